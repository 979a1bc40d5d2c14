//! Copies a dataset's data into one of another layout: other chunks, other filters.

mod frontier;
mod plan;

pub use plan::{PlanError, RechunkPlan, Rechunking};

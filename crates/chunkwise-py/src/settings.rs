//! The engine's settings by the names that users give them.

use std::collections::HashMap;

use chunkwise_engine::{Setting, change, in_force, set_default};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Threads that a process may ask for; more would not be given by most systems.
pub const MOST_THREADS: usize = 4096;

fn named(name: &str) -> PyResult<Setting> {
    let known = Setting::ALL.into_iter().find(|setting| setting.name() == name);
    known.ok_or_else(|| PyValueError::new_err(format!("there is no setting {name:?}")))
}

/// The value in force.
#[pyfunction]
pub fn setting(name: &str) -> PyResult<usize> {
    Ok(in_force(named(name)?))
}

/// Change some, None for the default; gives what was chosen before.
#[pyfunction]
pub fn change_settings(
    values: HashMap<String, Option<usize>>,
) -> PyResult<HashMap<&'static str, Option<usize>>> {
    let change = |(name, value): (String, _)| {
        let setting = named(&name)?;
        Ok((setting.name(), change(setting, value)))
    };
    values.into_iter().map(change).collect()
}

/// Change what is in force while nothing is chosen; of threads, the most.
#[pyfunction]
pub fn set_default_settings(values: HashMap<String, usize>) -> PyResult<()> {
    for (name, value) in values {
        set_default(named(&name)?, Some(value));
    }
    Ok(())
}

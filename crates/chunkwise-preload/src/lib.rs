//! Between a program and its libhdf5: the engine answers what the program reads.
//!
//! The dynamic loader puts this library before all others (`LD_PRELOAD`), so that the program's
//! calls of `H5Dread` come here ([`stand_in`]).  Which libhdf5 a call was meant for, its return
//! address says ([`callee`]).  What the engine can read it reads ([`reading`]), with the very
//! handles that the program gave; everything else goes on to that libhdf5, with its result, its
//! errors and its error stack.  Before the first dataset is read, only the environment is.
//!
//! # Locks
//!
//! A program calls a libhdf5 without thread-safety from one thread at a time, and is waiting in
//! `H5Dread` while this library calls the same libhdf5 on the same thread; one with thread-safety
//! locks itself in each call.  So there is no lock here ([`callee::CallersLock`]): one of our own
//! could be taken in another order than the library's, and both would wait for ever.  No other
//! thread of this library calls libhdf5.
//!
//! # Fork
//!
//! A child begins without what the parent knew of its datasets ([`datasets`]) and counted of them
//! ([`counted`]), as the engine does.

mod arithmetic;
mod call;
mod callee;
mod chosen;
mod conversions;
mod counted;
mod datasets;
mod elsewhere;
mod environment;
mod more;
mod queues;
mod reading;
mod report;
mod selected;
mod spaces;
mod stand_in;
mod trace;
mod traced;
mod walked;
mod why;
mod writing;

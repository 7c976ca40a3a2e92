//! Tests of the worker: one file for each concern, a kit of scenario words, and properties over random
//! events.

mod allotment;
mod code;
mod colocation;
mod environment;
mod faults;
mod gpu_admission;
mod gpu_kit;
mod gpu_monitoring;
mod gpu_restarts;
mod kit;
mod links;
mod prefetch;
mod properties;
mod stalls;
mod starting;
mod stopping;
mod usage;

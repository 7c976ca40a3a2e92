//! Lost objects are made again by their tasks.

mod coordinator;
mod member;

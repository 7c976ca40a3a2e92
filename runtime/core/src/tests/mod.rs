//! Scenarios of the head, told in the words of the kit.

mod arrays;
mod jobs;
mod kit;
mod replay;
mod requests;
mod workers;

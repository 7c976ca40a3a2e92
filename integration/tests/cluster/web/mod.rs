//! `cohabit web`: its pages by plain HTTP, and in a browser where one is installed.

mod browser;
pub(crate) mod http;
mod pages;
mod random_requests;
mod screens;
pub(crate) mod server;
mod strangers;
pub(crate) mod wall;

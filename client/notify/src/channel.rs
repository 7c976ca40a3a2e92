//! One channel: it follows the feed, and delivers what is for it, in order.

mod follower;
mod pacer;
mod progress;
mod retry;
#[cfg(test)]
mod tests;

pub(crate) use self::follower::{Follower, FollowerParts};

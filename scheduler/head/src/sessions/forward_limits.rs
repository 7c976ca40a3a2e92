//! How much of the head connections to ports of jobs may take, for each user.

use super::user_limiter::UserLimiter;

/// Pieces of one user that are passed at once. More bring no more speed.
const PASSED_AT_ONCE: usize = 4;
/// Pieces of one user to servers that are in the head at once, those that wait for their turn too; in KiB.
pub(super) const MOST_ARRIVED: usize = 64 << 10;

/// The limits of each user.
#[derive(Debug)]
pub(crate) struct ForwardLimits {
    /// The pieces that are passed.
    pub(super) passed: UserLimiter,
    /// The bytes that have arrived for servers, in KiB.
    pub(super) arrived: UserLimiter,
}

impl Default for ForwardLimits {
    fn default() -> ForwardLimits {
        ForwardLimits { passed: UserLimiter::new(PASSED_AT_ONCE), arrived: UserLimiter::new(MOST_ARRIVED) }
    }
}

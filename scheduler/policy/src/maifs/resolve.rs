//! Conflicts: several agents that start the same job (section 7, step 1).

use super::task_utilities::TaskUtilities;

/// Lets only the claimant with the largest margin keep each job, ties by node order; the others do nothing.
/// Returns the number of those others.
pub(crate) fn resolve(utilities: &TaskUtilities, tasks: &mut [usize]) -> usize {
    let mut holders: Vec<Option<usize>> = vec![None; utilities.tasks()];
    let mut losers = 0;
    for node in 0..tasks.len() {
        let task = tasks[node];
        if task == 0 {
            continue;
        }
        let Some(holder) = holders[task] else {
            holders[task] = Some(node);
            continue;
        };
        losers += 1;
        if utilities.margin(node, task) > utilities.margin(holder, task) {
            tasks[holder] = 0;
            holders[task] = Some(node);
        } else {
            tasks[node] = 0;
        }
    }
    losers
}

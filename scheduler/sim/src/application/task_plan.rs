//! What simulated tasks compute: trees that follow from a seed, so that their values are known beforehand.

use cohabit_application_core::OnTaskError;

/// Classes without GPUs, before those with GPUs.
const CPU_CLASSES: u64 = 2;

/// All classes of runners of a run.
pub(super) const TASK_CLASSES: u64 = 4;

/// Most items of a stream.
const MAX_ITEMS: u64 = 40;

/// A task with all tasks that it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskPlan {
    seed: u64,
    /// How many generations of tasks may be below it.
    height: u64,
    /// Which runners can run it.
    pub(super) class: usize,
}

impl TaskPlan {
    /// A tree of at most this height.
    pub(super) fn draw(seed: u64, height: u64) -> TaskPlan {
        let class = if choice(seed, 1, 4) == 0 { choice(seed, 2, TASK_CLASSES) } else { 0 };
        TaskPlan { seed, height, class: class as usize }
    }

    /// The tasks that it calls.
    pub(super) fn children(&self) -> Vec<TaskPlan> {
        if self.height == 0 {
            return Vec::new();
        }
        let most = if self.has_gpus() { 2 } else { 3 };
        let count = choice(self.seed, 3, most + 1);
        (0..count).map(|number| self.child(number)).collect()
    }

    /// Some tasks with GPUs call others with GPUs, and may wait for each other.
    fn child(&self, number: u64) -> TaskPlan {
        let seed = mix(self.seed, 100 + number);
        let drawn = TaskPlan::draw(seed, self.height - 1);
        let class = if choice(seed, 4, 2) == 0 { self.class } else { drawn.class };
        TaskPlan { class, ..drawn }
    }

    /// Its value, from those of its children in order.
    pub(super) fn combine(&self, children: &[u64]) -> u64 {
        children.iter().fold(mix(self.seed, 5), |hash, value| mix(hash, *value))
    }

    /// Its value, if nothing goes wrong. That of a stream is what its reader makes of the items.
    pub(super) fn value(&self) -> u64 {
        if let Some(items) = self.items() {
            return self.combine(&(1..=items).map(|number| self.item(number)).collect::<Vec<_>>());
        }
        let children: Vec<u64> = self.children().iter().map(TaskPlan::value).collect();
        self.combine(&children)
    }

    /// How many items it has, if it is a stream.
    pub(super) fn items(&self) -> Option<u64> {
        (choice(self.seed, 10, 5) == 0).then(|| choice(self.seed, 11, MAX_ITEMS + 1))
    }

    /// An item of its stream, by its number from 1.
    pub(super) const fn item(&self, number: u64) -> u64 {
        mix(mix(self.seed, 12), number)
    }

    /// Whether handles are in an item of its stream, if it has some.
    pub(super) fn has_handles(&self, number: u64) -> bool {
        choice(mix(self.seed, 13), number, 4) == 0
    }

    /// Whether handles of its arguments are in its value, if that is stored.
    pub(super) fn passes_handles(&self) -> bool {
        choice(self.seed, 14, 3) == 0
    }

    pub(super) const fn has_gpus(&self) -> bool {
        self.class as u64 >= CPU_CLASSES
    }

    /// Whether it calls an actor, too, if it has a handle.
    pub(super) fn calls_actor(&self) -> bool {
        !self.has_gpus() && choice(self.seed, 6, 3) == 0
    }

    /// Whether it ends whatever GPUs are in use.
    pub(super) fn needs_no_gpus(&self) -> bool {
        !self.has_gpus() && !self.calls_actor() && self.children().iter().all(TaskPlan::needs_no_gpus)
    }

    pub(super) fn retries(&self) -> u32 {
        choice(self.seed, 7, 4) as u32
    }

    pub(super) fn on_error(&self) -> OnTaskError {
        if choice(self.seed, 8, 3) == 0 { OnTaskError::Retry } else { OnTaskError::Fail }
    }

    /// One of a few functions, some of which are quick.
    pub(super) fn function(&self) -> u32 {
        choice(self.seed, 9, 4) as u32
    }
}

/// A number below `count` that follows from the seed.
fn choice(seed: u64, purpose: u64, count: u64) -> u64 {
    mix(seed, purpose) % count
}

/// One round of splitmix64.
const fn mix(hash: u64, value: u64) -> u64 {
    let mut mixed = hash.rotate_left(17) ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

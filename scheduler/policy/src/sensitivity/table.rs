//! A table of speeds by cores and host memory for each device.

use cohabit_types::Bytes;

/// The most rows, and the most columns, of a table.
const MOST_LEVELS: usize = 256;

/// How fast a model trains by cores and host memory for each of its devices: a grid that does not decrease,
/// bilinear between its points.
#[derive(Debug, Clone, PartialEq)]
pub struct SensitivityTable {
    /// Cores of each row, increasing.
    cores: Vec<f64>,
    /// Host memory of each column in bytes, increasing.
    memory: Vec<f64>,
    /// Rows of speeds, one after the other, all above 0.
    speeds: Vec<f64>,
}

/// Why speeds are no table.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SensitivityError {
    /// No speeds, too many, or levels that do not increase.
    #[error("it needs 1 to {MOST_LEVELS} numbers of cores and amounts of memory, each once and increasing")]
    Levels,
    /// A level of cores that is none.
    #[error("it has a speed for {0} cores: numbers of cores are above 0")]
    NoCores(f64),
    /// A point without a speed.
    #[error(
        "it has no speed for {cores} cores and {memory}: measure each number of cores with each amount of memory"
    )]
    Hole {
        /// The cores.
        cores: f64,
        /// The memory.
        memory: Bytes,
    },
    /// A speed that is no speed.
    #[error("its speed for {cores} cores and {memory} is {speed}: speeds are numbers above 0")]
    Speed {
        /// The cores.
        cores: f64,
        /// The memory.
        memory: Bytes,
        /// The number.
        speed: f64,
    },
    /// A speed that decreases with more of a resource.
    #[error(
        "its speed decreases to {speed} at {cores} cores and {memory}: more cores or memory slow no job down, so \
         measure again, or leave that point out with its row or column"
    )]
    Decreases {
        /// The cores.
        cores: f64,
        /// The memory.
        memory: Bytes,
        /// The smaller speed.
        speed: f64,
    },
}

impl SensitivityTable {
    /// A table of these rows, each with a speed for every amount of memory.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn new(
        cores: Vec<f64>,
        memory: &[Bytes],
        rows: &[Vec<f64>],
    ) -> Result<SensitivityTable, SensitivityError> {
        let fits = |levels: usize| (1..=MOST_LEVELS).contains(&levels);
        let increases =
            cores.is_sorted_by(|one, next| one < next) && memory.is_sorted_by(|one, next| one < next);
        if !fits(cores.len()) || !fits(memory.len()) || !increases {
            return Err(SensitivityError::Levels);
        }
        if let Some(none) = cores.iter().find(|cores| !(cores.is_finite() && **cores > 0.0)) {
            return Err(SensitivityError::NoCores(*none));
        }
        let mut speeds = Vec::with_capacity(cores.len() * memory.len());
        for (row, cores) in cores.iter().enumerate() {
            for (column, memory) in memory.iter().enumerate() {
                let (cores, memory) = (*cores, *memory);
                let speed = rows.get(row).and_then(|row| row.get(column)).copied();
                let speed = speed.ok_or(SensitivityError::Hole { cores, memory })?;
                if !(speed.is_finite() && speed > 0.0) {
                    return Err(SensitivityError::Speed { cores, memory, speed });
                }
                speeds.push(speed);
            }
        }
        let memory = memory.iter().map(|memory| memory.0 as f64).collect();
        let table = SensitivityTable { cores, memory, speeds };
        table.check_growth()?;
        Ok(table)
    }

    fn check_growth(&self) -> Result<(), SensitivityError> {
        for (row, cores) in self.cores.iter().enumerate() {
            for (column, memory) in self.memory.iter().enumerate() {
                let speed = self.point(row, column);
                let is_slower = (row > 0 && speed < self.point(row - 1, column))
                    || (column > 0 && speed < self.point(row, column - 1));
                if is_slower {
                    let memory = Bytes(*memory as u64);
                    return Err(SensitivityError::Decreases { cores: *cores, memory, speed });
                }
            }
        }
        Ok(())
    }

    fn point(&self, row: usize, column: usize) -> f64 {
        self.speeds[row * self.memory.len() + column]
    }

    /// The levels of cores.
    #[must_use]
    pub fn cores(&self) -> &[f64] {
        &self.cores
    }

    /// The levels of memory in bytes. With less than the first one, jobs do not train.
    #[must_use]
    pub fn memory(&self) -> &[f64] {
        &self.memory
    }

    /// The speed at so many cores and so much memory for each device: 0 below the first amount of memory, in
    /// proportion to the cores below the first number of them, and that of the last level beyond it.
    #[must_use]
    pub fn speed(&self, cores: f64, memory: f64) -> f64 {
        if memory < self.memory[0] {
            return 0.0;
        }
        let (column, right) = between(&self.memory, memory);
        let (row, lower) = between(&self.cores, cores);
        let next = |level: usize, levels: &[f64]| (level + 1).min(levels.len() - 1);
        let across = |row| mix(self.point(row, column), self.point(row, next(column, &self.memory)), right);
        let speed = mix(across(row), across(next(row, &self.cores)), lower);
        speed * (cores / self.cores[0]).clamp(0.0, 1.0)
    }
}

/// The level at or below a value, and how far it is on the way to the next one, 0 to 1.
fn between(levels: &[f64], value: f64) -> (usize, f64) {
    let above = levels.partition_point(|level| *level <= value);
    let below = above.saturating_sub(1);
    match levels.get(above) {
        Some(next) if above > 0 => (below, (value - levels[below]) / (next - levels[below])),
        Some(_) | None => (below, 0.0),
    }
}

fn mix(from: f64, to: f64, part: f64) -> f64 {
    from + (to - from) * part
}

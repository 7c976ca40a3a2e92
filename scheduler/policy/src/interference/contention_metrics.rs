//! How much a job uses of each shared resource, and how similar two jobs are in that.

/// A job's contention metrics, each from 0 (nothing) to 1 (as much as any job): measured, or completed by a
/// model. Metrics of one model can be compared with each other and with no others.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentionMetrics(pub Vec<f64>);

impl ContentionMetrics {
    /// The cosine of the angle between the metrics of two jobs, 0 to 1: whether they use the same resources,
    /// however much. A job that uses nothing is similar to none.
    #[must_use]
    pub fn similarity(&self, other: &ContentionMetrics) -> f64 {
        let size = |one: &ContentionMetrics| one.load(one).sqrt();
        let sizes = size(self) * size(other);
        if sizes > 0.0 { (self.load(other) / sizes).min(1.0) } else { 0.0 }
    }

    /// The sum of the products: how much they use of the same resources. Two tiny jobs have a small load,
    /// however similar they are.
    #[must_use]
    pub fn load(&self, other: &ContentionMetrics) -> f64 {
        self.0.iter().zip(&other.0).map(|(one, other)| one * other).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiny_jobs_that_use_the_same_are_similar_but_have_a_small_load() {
        let (tiny, large) = (ContentionMetrics(vec![0.01, 0.02]), ContentionMetrics(vec![0.5, 1.0]));
        assert!((tiny.similarity(&large) - 1.0).abs() < 1e-12);
        assert!((tiny.load(&tiny) - 0.0005).abs() < 1e-12);
        assert!((large.load(&large) - 1.25).abs() < 1e-12);
    }

    #[test]
    fn jobs_that_use_different_resources_or_none_are_not_similar() {
        let (one, other) = (ContentionMetrics(vec![1.0, 0.0]), ContentionMetrics(vec![0.0, 1.0]));
        assert_eq!((one.similarity(&other), one.load(&other)), (0.0, 0.0));
        assert_eq!(ContentionMetrics(vec![0.0, 0.0]).similarity(&one), 0.0);
    }
}

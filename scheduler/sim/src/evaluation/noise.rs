//! Log-normal errors of estimates. They depend on the seed and the job's number alone, so that a job has the
//! same error under every policy.

use crate::random::Random;

/// The factor by which the estimate of this job is wrong; `sigma` is the standard deviation of its logarithm.
pub(super) fn factor(seed: u64, job: usize, sigma: f64) -> f64 {
    let mut random = Random::stream(seed, &format!("error of job {job}"));
    (sigma * random.normal()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_log_normal_and_belong_to_the_job() {
        let logs: Vec<f64> = (0..4_000).map(|job| factor(7, job, 0.5).ln()).collect();
        let mean = logs.iter().sum::<f64>() / 4_000.0;
        let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 4_000.0).sqrt();
        assert!(mean.abs() < 0.03 && (deviation - 0.5).abs() < 0.02, "{mean} {deviation}");
        assert_eq!(factor(7, 3, 0.5), factor(7, 3, 0.5));
        assert_ne!(factor(7, 3, 0.5), factor(8, 3, 0.5));
        assert_eq!(factor(7, 3, 0.0), 1.0);
    }
}

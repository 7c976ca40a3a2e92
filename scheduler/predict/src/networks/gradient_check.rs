//! Compares gradients with central differences.

use candle_core::{Device, Tensor};

use super::parameters::Parameters;

/// Compares the gradient of every parameter with central differences at a few positions.
#[track_caller]
pub(crate) fn gradients_agree(parameters: &Parameters, value: impl Fn() -> Tensor) {
    const STEP: f64 = 1e-5;
    const PLACES: usize = 8;
    let gradients = value().backward().unwrap();
    for (name, variable) in parameters.iter() {
        let gradient = gradients.get(variable).unwrap_or_else(|| panic!("{name} got no gradient"));
        let gradient: Vec<f64> = gradient.flatten_all().unwrap().to_vec1().unwrap();
        let before: Vec<f64> = variable.flatten_all().unwrap().to_vec1().unwrap();
        for (at, computed) in gradient.iter().enumerate().step_by(gradient.len().div_ceil(PLACES)) {
            let set = |by: f64| {
                let mut values = before.clone();
                values[at] += by;
                variable.set(&Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
            };
            let moved = |by: f64| {
                set(by);
                value().to_scalar::<f64>().unwrap()
            };
            let difference = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            set(0.0);
            let close = (computed - difference).abs() <= 1e-7 + 1e-5 * difference.abs();
            assert!(close, "{name}[{at}]: {computed} instead of {difference}");
        }
    }
}

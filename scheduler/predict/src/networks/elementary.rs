//! Elementary functions on slices, without branches, so that the compiler uses vector instructions. The
//! same numbers come out on every machine.

/// Adding and subtracting this rounds a number below 2^22 to the nearest integer.
const ROUNDER: f32 = 12_582_912.0;
/// The largest exponent that gives a finite number; smaller ones than its opposite give about 0.
const LARGEST_EXPONENT: f32 = 87.0;
/// ln 2 as a sum of a number with few digits and a small rest.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// sqrt(2 / pi).
const GELU_FACTOR: f32 = 0.797_884_6;
/// The coefficient of the cube in the approximation of GELU.
const GELU_CUBE: f32 = 0.044_715;

/// e^x with a relative error of about 1e-7.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x.clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT);
    let rounded = x * std::f32::consts::LOG2_E + ROUNDER;
    let power = rounded - ROUNDER;
    let rest = x - power * LN_2_HIGH - power * LN_2_LOW;
    // The Taylor series; |rest| <= ln 2 / 2.
    let series = 1.0 / 720.0 + rest * (1.0 / 5040.0);
    let series = 1.0 / 120.0 + rest * series;
    let series = 1.0 / 24.0 + rest * series;
    let series = 1.0 / 6.0 + rest * series;
    let series = 0.5 + rest * series;
    let series = 1.0 + rest * (1.0 + rest * series);
    // The low bits of `rounded` hold the power, which becomes the exponent.
    let scale = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    series * scale
}

/// GELU in its usual approximation by the hyperbolic tangent, which the tensor library computes too.
#[inline(always)]
pub(crate) fn gelu(values: &mut [f32]) {
    for value in values {
        let x = *value;
        let twice = 2.0 * GELU_FACTOR * x * (1.0 + GELU_CUBE * x * x);
        // (1 + tanh(y)) / 2 = 1 - 1 / (e^2y + 1)
        *value = x - x / (exp(twice) + 1.0);
    }
}

/// The logistic function.
#[inline(always)]
pub(crate) fn sigmoid(values: &mut [f32]) {
    for value in values {
        *value = 1.0 / (exp(-*value) + 1.0);
    }
}

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh(values: &mut [f32]) {
    for value in values {
        *value = 1.0 - 2.0 / (exp(2.0 * *value) + 1.0);
    }
}

/// The leaky rectifier with this slope below 0.
#[inline(always)]
pub(crate) fn leaky_relu(values: &mut [f32], slope: f32) {
    for value in values {
        *value = value.max(slope * *value);
    }
}

/// Softmax of the numbers where the mask holds; 0 elsewhere, and everywhere if it holds nowhere.
#[inline(always)]
pub(crate) fn masked_softmax(scores: &mut [f32], is_kept: impl Fn(usize) -> bool) {
    let kept = scores.iter().enumerate().filter(|(at, _)| is_kept(*at)).map(|(_, score)| *score);
    let most = kept.fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for (at, score) in scores.iter_mut().enumerate() {
        *score = if is_kept(at) { exp(*score - most) } else { 0.0 };
        sum += *score;
    }
    if sum > 0.0 {
        scores.iter_mut().for_each(|score| *score /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_function_is_that_of_the_standard_library() {
        for at in -8_000..8_000_i16 {
            let x = f32::from(at) / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) / exact - 1.0).abs();
            assert!(error < 4e-7, "e^{x} is off by {error:e}");
        }
        assert!(exp(1e9).is_finite() && exp(-1e9) < 1e-30);
    }

    #[test]
    fn gelu_is_that_of_the_definition() {
        for at in -1_000..1_000_i16 {
            let x = f64::from(at) / 100.0;
            let tanh = ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh();
            let mut values = [x as f32];
            gelu(&mut values);
            assert!((f64::from(values[0]) - 0.5 * x * (1.0 + tanh)).abs() < 1e-6, "{x}");
        }
    }

    #[test]
    fn sigmoid_tanh_and_the_rectifier_are_those_of_their_definitions() {
        for at in -3_000..3_000_i16 {
            let x = f64::from(at) / 100.0;
            let (mut one, mut two, mut three) = ([x as f32], [x as f32], [x as f32]);
            sigmoid(&mut one);
            tanh(&mut two);
            leaky_relu(&mut three, 0.01);
            assert!((f64::from(one[0]) - 1.0 / (1.0 + (-x).exp())).abs() < 1e-6, "{x}");
            assert!((f64::from(two[0]) - x.tanh()).abs() < 1e-6, "{x}");
            assert!((f64::from(three[0]) - if x > 0.0 { x } else { 0.01 * x }).abs() < 1e-5, "{x}");
        }
    }

    #[test]
    fn a_softmax_of_nothing_is_0() {
        let mut scores = [1.0, 2.0];
        masked_softmax(&mut scores, |_| false);
        assert_eq!(scores, [0.0, 0.0]);
        masked_softmax(&mut scores, |at| at == 1);
        assert_eq!(scores, [0.0, 1.0]);
    }
}

//! An affine map of rows.

use candle_core::Result;
use pulp::Simd;

use crate::networks::Parameters;

/// An affine map.
#[derive(Debug)]
pub(super) struct DenseRows {
    from: usize,
    /// Outputs, rounded up to whole lanes.
    lanes: usize,
    to: usize,
    /// `[from, lanes]`, 0 behind `to`.
    weight: Vec<f32>,
    /// `[lanes]`.
    bias: Vec<f32>,
}

/// Outputs are padded to the widest vectors that there are.
const PADDING: usize = 16;
/// Rows that are computed together, so that weights are read once for all of them.
const ROWS: usize = 4;

impl DenseRows {
    /// The map whose parameters have this name.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub(super) fn of(parameters: &Parameters, name: &str, to: usize) -> Result<DenseRows> {
        let bias = parameters.numbers(&format!("{name}.bias"))?;
        let mut map = DenseRows::without_bias(parameters, &format!("{name}.weight"), to)?;
        map.bias[..to].copy_from_slice(&bias);
        Ok(map)
    }

    /// The map with this weight.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(super) fn without_bias(parameters: &Parameters, name: &str, to: usize) -> Result<DenseRows> {
        let numbers = parameters.numbers(name)?;
        let lanes = to.next_multiple_of(PADDING);
        let mut weight = vec![0.0; numbers.len() / to * lanes];
        for (padded, row) in weight.chunks_exact_mut(lanes).zip(numbers.chunks_exact(to)) {
            padded[..to].copy_from_slice(row);
        }
        Ok(DenseRows { from: numbers.len() / to, lanes, to, weight, bias: vec![0.0; lanes] })
    }

    /// The number of inputs of a row.
    pub(super) const fn from(&self) -> usize {
        self.from
    }

    /// Maps `[rows, from]` into `[rows, to]`.
    #[inline(always)]
    pub(super) fn apply<S: Simd>(&self, simd: S, input: &[f32], output: &mut [f32]) {
        self.apply_into(simd, input, output, (self.to, 0));
    }

    /// Maps `[rows, from]` into the columns from `at` on of `[rows, width]`.
    ///
    /// The numbers of each output are added in the order of the inputs, whatever vectors there are: the same
    /// sums come out on every machine.
    #[inline(always)]
    pub(super) fn apply_into<S: Simd>(
        &self,
        simd: S,
        input: &[f32],
        output: &mut [f32],
        place: (usize, usize),
    ) {
        let whole = input.len() / self.from / ROWS * ROWS;
        for row in (0..whole).step_by(ROWS) {
            self.apply_rows::<S, ROWS>(simd, input, output, row, place);
        }
        for row in whole..input.len() / self.from {
            self.apply_rows::<S, 1>(simd, input, output, row, place);
        }
    }

    #[inline(always)]
    fn apply_rows<S: Simd, const COUNT: usize>(
        &self,
        simd: S,
        input: &[f32],
        output: &mut [f32],
        first: usize,
        (width, at): (usize, usize),
    ) {
        let rows: [&[f32]; COUNT] =
            std::array::from_fn(|row| &input[(first + row) * self.from..(first + row + 1) * self.from]);
        let (weights, _) = S::as_simd_f32s(&self.weight);
        let (bias, _) = S::as_simd_f32s(&self.bias);
        let vectors = self.lanes / S::F32_LANES;
        let needed = self.to.div_ceil(S::F32_LANES);
        for (vector, bias) in bias.iter().enumerate().take(needed) {
            let mut sums = [*bias; COUNT];
            let mut position = vector;
            for from in 0..self.from {
                let weight = weights[position];
                position += vectors;
                for (sum, row) in sums.iter_mut().zip(&rows) {
                    *sum = simd.add_f32s(*sum, simd.mul_f32s(simd.splat_f32s(row[from]), weight));
                }
            }
            let lane = vector * S::F32_LANES;
            let count = S::F32_LANES.min(self.to - lane);
            for (row, sum) in sums.into_iter().enumerate() {
                let start = (first + row) * width + at + lane;
                simd.partial_store_f32s(&mut output[start..start + count], sum);
            }
        }
    }
}

//! Tensors by name, as plain numbers.

use std::collections::BTreeMap;

use candle_core::{DType, Tensor};

/// Why weights do not fit the networks.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// A tensor is missing.
    #[error("the weights lack '{0}'")]
    Missing(String),
    /// A tensor has another shape.
    #[error("'{name}' has the shape {is:?} instead of {should:?}")]
    Shape {
        /// Its name.
        name: String,
        /// Its shape.
        is: Vec<usize>,
        /// The shape that the networks need.
        should: Vec<usize>,
    },
    /// The tensor library reported an error.
    #[error(transparent)]
    Tensors(#[from] candle_core::Error),
}

/// Tensors by name.
#[derive(Debug)]
pub(crate) struct StoredTensors<'a>(pub(crate) &'a BTreeMap<String, Tensor>);

impl StoredTensors<'_> {
    /// The numbers of a tensor of this shape.
    ///
    /// # Errors
    ///
    /// If it is missing or has another shape.
    pub(super) fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, WeightsError> {
        let Some(tensor) = self.0.get(name) else { return Err(WeightsError::Missing(name.to_owned())) };
        if tensor.dims() != shape {
            let (is, should) = (tensor.dims().to_vec(), shape.to_vec());
            return Err(WeightsError::Shape { name: name.to_owned(), is, should });
        }
        Ok(tensor.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?)
    }
}

//! Tests of the order by Gittins indices.

mod beliefs;
mod scenarios;

//! Tables, their curves and the hand-out.

mod hand_out;
mod kit;
mod table;

//! From which node a store fetches what it wants: rules one by one, and all of them in any order.

mod model;
mod scenarios;

//! The generated protocol under Stateright's breadth-first checker, on one thread. Prints distinct states and steps.

use stateright::{Checker, Model, Property};

#[allow(unused_parens, unused_variables, clippy::all)]
mod generated;
use generated::{guard, observe, update, INITIAL, MOVES, WORDS};

struct Protocol;

impl Model for Protocol {
    type State = [u64; WORDS];
    type Action = u16;

    fn init_states(&self) -> Vec<Self::State> {
        vec![INITIAL]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        let enabled = guard(state);
        actions.extend((0..MOVES).filter(|&at| enabled[at]).map(|at| at as u16));
    }

    fn next_state(&self, state: &Self::State, action: Self::Action) -> Option<Self::State> {
        Some(update(action, state))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::<Self>::always("holds", |_, state| observe(state))]
    }
}

fn main() {
    let checker = Protocol.checker().threads(1).spawn_bfs().join();
    println!("{} {}", checker.unique_state_count(), checker.state_count());
}

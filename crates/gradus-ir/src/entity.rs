//! Typed 32-bit ids and the arenas indexed by the ids.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A typed index of an [`Arena`].
pub trait Entity: Copy + Eq {
    /// Returns the id of position `index`. An arena holds fewer than 2³² − 1 elements.
    fn from_index(index: usize) -> Self;
    /// Returns the position, counted from 0.
    fn index(self) -> usize;
}

macro_rules! entities {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(std::num::NonZeroU32);

        impl $crate::Entity for $name {
            fn from_index(index: usize) -> Self {
                let raw = u32::try_from(index + 1).ok().and_then(std::num::NonZeroU32::new);
                Self(raw.expect("fewer than 2^32 - 1 elements in an arena"))
            }
            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}{}", stringify!($name), self.0.get() - 1)
            }
        }
    )* };
}
pub(crate) use entities;

/// An append-only table, indexed by the ids that [`Arena::push`] returns.
#[derive(Clone, Debug)]
pub struct Arena<K, V> {
    items: Vec<V>,
    /// True after each mutable access, until [`Arena::take_touched`].
    touched: Cell<bool>,
    /// True after each mutable access to an element, until [`Arena::take_edited`].
    edited: Cell<bool>,
    key: PhantomData<K>,
}

impl<K, V> Default for Arena<K, V> {
    fn default() -> Self {
        Arena {
            items: Vec::new(),
            touched: Cell::new(true),
            edited: Cell::new(false),
            key: PhantomData,
        }
    }
}

impl<K: Entity, V> Arena<K, V> {
    /// Appends `item` and returns the id.
    pub fn push(&mut self, item: V) -> K {
        self.touched.set(true);
        self.items.push(item);
        K::from_index(self.items.len() - 1)
    }
    /// Returns whether the arena was accessed mutably since the last call.
    pub(crate) fn take_touched(&self) -> bool {
        self.touched.replace(false)
    }
    /// Returns whether an element was accessed mutably since the last call. New elements do not count.
    pub(crate) fn take_edited(&self) -> bool {
        self.edited.replace(false)
    }
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Returns whether the arena is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// Iterates over all ids in the order of creation.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = K> + use<K, V> {
        (0..self.items.len()).map(K::from_index)
    }
    /// Iterates over all ids and elements.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> {
        self.items
            .iter()
            .enumerate()
            .map(|(i, v)| (K::from_index(i), v))
    }
}

impl<K: Entity, V> Index<K> for Arena<K, V> {
    type Output = V;
    fn index(&self, key: K) -> &V {
        &self.items[key.index()]
    }
}

impl<K: Entity, V> IndexMut<K> for Arena<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        self.touched.set(true);
        self.edited.set(true);
        &mut self.items[key.index()]
    }
}

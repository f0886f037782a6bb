use std::sync::Arc;

use super::ContextProvider;

/// The providers, in the order in which they speak.
#[derive(Clone, Default)]
pub struct Injector {
    providers: Vec<Arc<dyn ContextProvider>>,
}

impl Injector {
    /// Adds a provider at the end. One of the same name is replaced and keeps its place: only taking it
    /// out first moves it.
    pub fn register(&mut self, provider: Arc<dyn ContextProvider>) {
        let same = |known: &Arc<dyn ContextProvider>| known.name() == provider.name();
        match self.providers.iter().position(same) {
            Some(at) => self.providers[at] = provider,
            None => self.providers.push(provider),
        }
    }

    /// Takes a provider out. Whether it was there.
    pub fn unregister(&mut self, name: &str) -> bool {
        let before = self.providers.len();
        self.providers.retain(|provider| provider.name() != name);
        self.providers.len() < before
    }

    /// Their names, in order.
    pub fn list(&self) -> Vec<&str> {
        self.providers.iter().map(|known| known.name()).collect()
    }

    /// The providers, in order.
    pub fn providers(&self) -> &[Arc<dyn ContextProvider>] {
        &self.providers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str, u8);

    impl ContextProvider for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn traits(&self) -> super::super::Traits {
            super::super::Traits {
                priority: self.1.into(),
                ..Default::default()
            }
        }
    }

    #[test]
    fn a_provider_of_the_same_name_takes_the_place_of_the_first() {
        let mut injector = Injector::default();
        for (name, n) in [("a", 0), ("b", 0), ("c", 0), ("a", 1)] {
            injector.register(Arc::new(Named(name, n)));
        }
        assert_eq!(injector.list(), ["a", "b", "c"]);
        assert_eq!(injector.providers()[0].traits().priority, 1);
        assert!(injector.unregister("a") && !injector.unregister("a"));
        injector.register(Arc::new(Named("a", 2)));
        assert_eq!(injector.list(), ["b", "c", "a"]);
    }
}

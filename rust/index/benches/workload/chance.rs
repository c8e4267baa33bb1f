//! Texts and vectors that are the same in every run.

pub const DIMENSIONS: usize = 384;
const WORDS: f64 = 5_000.0;

/// Numbers that are the same in every run.
pub struct Chance(pub u64);

impl Chance {
    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn below(&mut self, end: u32) -> u32 {
        (self.unit() * f64::from(end)) as u32
    }

    /// Small ranks far more often than large ones.
    pub fn words(&mut self, count: u32) -> String {
        let word = |rank: f64| format!("w{} ", rank as u32);
        (0..count).map(|_| word(WORDS.powf(self.unit()))).collect()
    }

    /// Near enough to normal.
    pub fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| (self.unit() + self.unit() + self.unit() - 1.5) as f32).collect()
    }

    pub fn near(&mut self, centre: &[f32]) -> Vec<f32> {
        self.vector().iter().zip(centre).map(|(x, centre)| x + centre).collect()
    }
}

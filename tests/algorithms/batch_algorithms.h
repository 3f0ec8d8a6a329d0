#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "training/engine/algorithm.h"
#include "training/state.h"

namespace tutti {

// All events at which the algorithm acts in the state.
inline std::set<Event> events_of(const Algorithm& algorithm, const State& state = {}) {
  std::set<Event> events;
  for (std::size_t e = 0; e < kEvents; ++e)
    if (algorithm.match(static_cast<Event>(e), state)) events.insert(static_cast<Event>(e));
  return events;
}

// A state in a training of 100 batches, with a rank's batch of images [samples, 2, 8, 10] and labels below 3.
inline State image_state(int64_t step = 0, int64_t first_sample = 0, int64_t samples = 6) {
  State state;
  state.seed = 5;
  state.max_duration = Time(100, TimeUnit::kBatch);
  state.timestamp.batch = state.timestamp.batch_in_epoch = step;
  state.first_sample = first_sample;
  state.batch.set("input", at::arange(samples * 160, at::kFloat).view({samples, 2, 8, 10}) + 1);
  state.batch.set("target", at::arange(samples) % 3);
  return state;
}

// Runs the algorithm at these events and expects that no tensor of the batch is written into.
inline void run(Algorithm& algorithm, State& state, const std::vector<Event>& events) {
  const Batch given = state.batch;
  const Batch before = given.map([](const at::Tensor& array) { return array.clone(); });
  Logger logger;
  for (const Event event : events) algorithm.apply(event, state, logger);
  for (const auto& [name, array] : before.leaves()) EXPECT_TRUE(at::equal(given[name], array)) << name;
}

inline at::Tensor input_after(Algorithm& algorithm, State state, Event event) {
  run(algorithm, state, {event});
  return state.batch["input"];
}

// Expects that what the algorithm draws for a batch depends on the step, not on the rank.
inline void expect_drawn_once_a_batch(Algorithm& algorithm, Event event) {
  const at::Tensor one = input_after(algorithm, image_state(3, 0), event);
  EXPECT_TRUE(at::equal(one, input_after(algorithm, image_state(3, 0), event)));
  EXPECT_TRUE(at::equal(one, input_after(algorithm, image_state(3, 24), event)));
  bool differs = false;
  for (int64_t step = 4; step < 8; ++step)
    differs = differs || !at::equal(one, input_after(algorithm, image_state(step, 0), event));
  EXPECT_TRUE(differs);
}

}  // namespace tutti

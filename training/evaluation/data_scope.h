#pragma once

#include <string>
#include <utility>

#include "training/state.h"

namespace tutti {

// While it lives the state's batches are those of other data than the training's.
class DataScope {
 public:
  DataScope(State& state, const std::string& label, const Dataset* dataset)
      : state_(state),
        label_(std::exchange(state.dataloader_label, label)),
        dataset_(std::exchange(state.dataset, dataset)) {}
  ~DataScope() {
    state_.dataloader_label = label_;
    state_.dataset = dataset_;
  }
  DataScope(const DataScope&) = delete;

 private:
  State& state_;
  std::string label_;
  const Dataset* dataset_;
};

}  // namespace tutti

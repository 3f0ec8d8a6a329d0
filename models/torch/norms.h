#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/layer.h"

namespace tutti {

class BufferUpdates;

// The batch norms that a layer's code calls by libtorch's operator, with buffers of the layer.
class Norms {
 public:
  // The names of a norm's buffers.
  static constexpr const char *kMean = "running_mean", *kVariance = "running_var",
                              *kTracked = "num_batches_tracked";

  // `handle`: what the code has in place of the mean's buffer; undefined: the buffer's tensor. `tracked`: the
  // number of batches, or null.
  void add(Buffer& mean, Buffer& variance, Buffer* tracked, at::Tensor handle = {});
  bool empty() const { return norms_.empty(); }
  // The norm whose running mean this is; -1: none.
  int find(const at::Tensor& running_mean) const;
  // True for a buffer of a norm.
  bool has(const Buffer& buffer) const;

  // Numbers a pass of the layer: of each norm mean, unbiased variance, their weight in the update, and the
  // number of calls; zeros if it was not called.
  int64_t size() const { return size_; }
  // Statistics of two calls of a norm, on their device; `so_far` is undefined before the first call.
  at::Tensor joined(const at::Tensor& so_far, const at::Tensor& next) const;
  // All numbers of a pass. Statistics of norms that were not called are undefined.
  at::Tensor row(const std::vector<at::Tensor>& statistics) const;
  void join(RunningStatistics& so_far, const RunningStatistics& next) const;
  void apply(const RunningStatistics& statistics, BufferUpdates& updates) const;

  std::size_t count() const { return norms_.size(); }

 private:
  struct Norm {
    Buffer* mean;
    Buffer* variance;
    Buffer* tracked;
    at::Tensor handle;
    int64_t channels;
    int64_t first;  // of its numbers
  };
  std::vector<Norm> norms_;
  int64_t size_ = 0;
};

// A layer whose code calls batch norms by libtorch's operator.
class LayerWithNorms : public Layer {
 public:
  int64_t statistics_size() const override { return norms_.size(); }
  void join_statistics(RunningStatistics& so_far, const RunningStatistics& next) const override {
    norms_.join(so_far, next);
  }
  void apply_statistics(const RunningStatistics& statistics, BufferUpdates& updates) override {
    norms_.apply(statistics, updates);
  }

 protected:
  Norms norms_;
};

}  // namespace tutti

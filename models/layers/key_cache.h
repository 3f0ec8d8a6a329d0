#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tutti {

// Keys and values of the tokens that a causal model has seen, so that a pass of generation runs over the new
// tokens alone. Layers find the cache in their context (ForwardContext::cache); a pass changes the cache
// alone. The first pass has all tokens of each row [N, T], short rows padded at the end; each later pass has
// the last token of each row, [N, 1].
class KeyCache {
 public:
  // Has room for so many tokens a row.
  explicit KeyCache(int64_t capacity) : capacity_(capacity) {}

  // Before each pass. `lengths`: the tokens of each row, including the pass's.
  void begin_pass(std::vector<int64_t> lengths);
  bool is_first_pass() const { return passes_ == 1; }
  int64_t layers() const { return static_cast<int64_t>(kept_.size()); }  // that kept keys so far

  // The places of the pass's tokens in their rows: int64 [T], or [N, 1] where rows differ.
  at::Tensor positions(const at::Tensor& tokens) const;
  // The states of each row's last token, [N, 1, features], of states [N, T, features].
  at::Tensor last_of_rows(const at::Tensor& states) const;

  // The keys that the tokens of a later pass see.
  struct Seen {
    at::Tensor keys, values;  // [N, heads, tokens, features]
    at::Tensor mask;          // bool [N, 1, 1, tokens]: the counted keys; undefined: all keys
    int64_t first = 0;        // the place of the first token
  };
  // Keeps the keys and values [N, heads, T, features] of the pass's tokens. Called once by each attention in
  // every pass, in the same order. Gives the keys and values of all tokens so far, or of as many as fit into
  // `window`; in the first pass the given tensors.
  Seen keep(const at::Tensor& keys, const at::Tensor& values, int64_t window = 0);

 private:
  struct Kept {
    at::Tensor keys, values;  // [N, heads, capacity, features]
  };
  void write(const at::Tensor& to, const at::Tensor& numbers) const;
  at::Tensor mask(int64_t first, int64_t window, at::Device device);

  int64_t capacity_;
  int64_t passes_ = 0;
  std::vector<int64_t> lengths_;  // of the rows
  int64_t longest_ = 0;
  bool rows_differ_ = false;
  std::size_t next_ = 0;  // the pair of the attention that calls next
  std::vector<Kept> kept_;
  std::map<int64_t, at::Tensor> masks_;  // of the pass, by window
};

}  // namespace tutti

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/cut.h"
#include "sharding/buckets.h"
#include "sharding/units.h"
#include "training/trainee.h"

namespace tutti {

// The parameters of a trainee that holds a share (Trainee::share), which other ranks read. The model computes
// with whole parameters, in one flat tensor per block. Either whole parameters stay in memory and the share
// is a view; or the share is dense, and whole parameters have memory only while held. Freeing and refilling
// changes no tensor, view or version counter, so tensors saved by autograd stay valid. Whole parameters can
// be read and written only while shown; otherwise access throws c10::Error, whose text names the right call.
class ShardedParameters {
 public:
  // The parameters of a unit with one dtype.
  struct Block {
    std::size_t unit = 0;
    Bucket layout;     // of the whole; slots count parameters as Trainee::parameters
    CutPtr cut;        // of the whole, in elements
    at::Tensor part;   // flat, in the layout's dtype: this rank's rows, or the whole if it stays
    at::Tensor exact;  // flat: the memory of the views; `part`, unless `part` has fewer bits. Of a trainee
                       // that offloads parameters, in pinned memory of the host
  };

  // `units`: of the trainee's model (find_units). `stays`: whole parameters stay in memory. `cast`: for each
  // parameter, true if gathered in the trainee's autocast dtype (cast_by_autocast); empty: none. The trainee
  // must outlive this object, and its parameters must not be replaced. Throws UserError if a parameter cannot
  // be cut by rows.
  ShardedParameters(Trainee& trainee, const std::vector<Unit>& units, bool stays,
                    const std::vector<bool>& cast = {});
  ~ShardedParameters();
  ShardedParameters(const ShardedParameters&) = delete;

  const std::vector<Block>& blocks() const { return blocks_; }
  std::span<const Block> blocks_of(std::size_t unit) const {
    return std::span(blocks_).subspan(first_[unit], first_[unit + 1] - first_[unit]);
  }
  // The blocks of unit `u`: [first, last).
  std::size_t first_block(std::size_t unit) const { return first_[unit]; }
  std::size_t last_block(std::size_t unit) const { return first_[unit + 1]; }

  // For each block the bytes that other ranks read, equal on all ranks.
  std::vector<int64_t> shared_bytes() const;
  // Sets the memory (flat uint8, shared_bytes) into which the trainee's views move; parts with fewer bits
  // move into memory of their own.
  void bind(const std::vector<at::Tensor>& memory);
  // Casts views into the parts that have fewer bits. Call before gathering, when views have changed.
  void cast_parts();

  // Allocates memory for the whole parameters of a block. Returns the memory for a gather: flat, in the
  // layout's dtype, not owning. Undefined if the memory stays.
  at::Tensor hold(std::size_t block);
  // The same to gather `exact`, in its dtype: the parameters are other tensors until `free`.
  at::Tensor hold_exact(std::size_t block);
  // Call once a held block is gathered; the block can be read until `free`.
  void show(std::size_t block);
  void free(std::size_t block);
  bool is_held(std::size_t block) const { return held_[block].defined(); }
  // Of the whole parameters that are in memory now, beside this rank's share.
  double gathered_bytes() const;

 private:
  at::ScalarType exact_dtype(const Block& block) const;
  bool offloads() const { return trainee_.offloads_parameters && !trainee_.device.is_cpu(); }
  void give_storage(std::size_t block, const std::vector<at::Tensor>& like);
  void hide(std::size_t block);
  at::Tensor empty(std::size_t block, at::ScalarType dtype) const;

  Trainee& trainee_;
  bool stays_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> first_;                 // block of each unit, and the end
  std::vector<c10::Storage> storage_;              // of the whole parameters of each block
  std::vector<c10::Storage> hidden_;               // of each parameter while it is not held
  std::vector<at::Tensor> held_;                   // the memory in it
  std::vector<std::vector<at::Tensor>> replaced_;  // while a block is held exactly: its tensors, by slot
};

}  // namespace tutti

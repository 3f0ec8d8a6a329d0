#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "collectives/cut.h"
#include "sharding/buckets.h"
#include "sharding/units.h"
#include "training/trainee.h"

namespace tutti {

// The parameters of a trainee that has a share of them (Trainee::share), which other ranks read. The whole
// parameters, which the model computes with, lie in one flat tensor a block. Either they stay in memory, and
// the share is its rows in them; or the share lies densely, and the whole has memory only while it is held:
// freeing and refilling changes no tensor, view or version counter, so what autograd has saved stays valid.
// Whole parameters can be read and written only while they are shown. At other times that throws c10::Error,
// which says what to do instead.
class ShardedParameters {
 public:
  // The parameters of a unit that are whole in one dtype.
  struct Block {
    std::size_t unit = 0;
    Bucket layout;     // of the whole; slots count parameters as Trainee::parameters
    CutPtr cut;        // of the whole, in elements
    at::Tensor part;   // flat, of the layout's dtype: this rank's rows, or the whole if that stays
    at::Tensor exact;  // flat: what the views are of; `part`, unless that has fewer bits
  };

  // `units`: of the trainee's model (find_units). `stays`: whole parameters stay in memory. `cast`: of each
  // parameter, whether it is gathered in the trainee's autocast dtype (cast_by_autocast); empty: none is.
  // The trainee must outlive this, and its parameters stay as they are. Throws UserError if a parameter
  // cannot be cut by rows.
  ShardedParameters(Trainee& trainee, const std::vector<Unit>& units, bool stays,
                    const std::vector<bool>& cast = {});
  ~ShardedParameters();
  ShardedParameters(const ShardedParameters&) = delete;

  const std::vector<Block>& blocks() const { return blocks_; }
  // The blocks of unit `u`: [first, last).
  std::size_t first_block(std::size_t unit) const { return first_[unit]; }
  std::size_t last_block(std::size_t unit) const { return first_[unit + 1]; }

  // Bytes of the memory of each block that other ranks read, equal on all ranks.
  std::vector<int64_t> shared_bytes() const;
  // Sets this memory (flat uint8, shared_bytes), and moves the trainee's views into it, or, where parts have
  // fewer bits, into memory of their own.
  void bind(const std::vector<at::Tensor>& memory);
  // Casts views into the parts that have fewer bits. Call before gathering, when views have changed.
  void cast_parts();

  // Allocates memory for the whole parameters of a block and returns it, for others to write into: flat, of
  // the layout's dtype, not an owner of the memory. Undefined if the memory stays.
  at::Tensor hold(std::size_t block);
  // The same for what is gathered of `exact`, in its dtype: the parameters are other tensors until `free`.
  at::Tensor hold_exact(std::size_t block);
  // What is held is gathered, and can be read until `free`.
  void show(std::size_t block);
  void free(std::size_t block);
  bool is_held(std::size_t block) const { return held_[block].defined(); }

 private:
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

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/shards/shard_folder.h"
#include "data/shards/shard_order.h"
#include "io/formats/mds_values.h"

namespace tutti {

// The samples of an MDS dataset, by their index over all shards. Thread-safe.
class MdsSamples {
 public:
  // `shuffle_block`: of ShardOrder.
  MdsSamples(const ShardFolder::Options& options, int64_t shuffle_block);

  // A sample, in a shard that stays mapped as long as the object lives.
  class Sample {
   public:
    // The bytes of a column. Throws UserError, without the file's name.
    MdsBytes value(std::size_t column) const;

   private:
    friend class MdsSamples;
    OpenShardPtr shard_;
    const std::vector<MdsColumn>* columns_ = nullptr;
    int64_t row_ = 0;
  };

  int64_t size() const { return firsts_.back(); }
  const std::vector<MdsColumn>& columns() const { return folder_.index().columns; }
  // The column's place. Throws UserError with the file and the names that there are.
  std::size_t column(const std::string& name) const;
  // Throws as ShardFolder::open.
  Sample sample(int64_t index) const;
  std::string path(int64_t index) const { return folder_.path(shard_of(index)); }  // of its shard
  std::string place(int64_t index) const;                                          // "sample 3 of the shard"

  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const {
    return shuffle ? order_.sample(seed, epoch, position) : position;
  }
  // True if a sample may have to be fetched.
  bool is_remote() const { return !folder_.options().remote.empty(); }
  bool is_there(int64_t index) const { return folder_.is_there(shard_of(index)); }
  void verify() const;  // every shard's hash
  uint64_t digest() const { return digest_; }
  // A line if the shards of a shuffled window do not fit in the local folder, else "".
  std::string advice() const;

 private:
  int64_t shard_of(int64_t index) const;

  ShardFolder folder_;
  std::vector<int64_t> firsts_;  // the first sample of each shard, and the number of samples
  ShardOrder order_;
  uint64_t digest_ = 0;
};

}  // namespace tutti

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/checkpoint_names.h"
#include "io/hdf5/hdf5_writer.h"
#include "runtime/disk.h"
#include "tensors/param_view.h"

namespace tutti {

// A checkpoint is a folder:
//   rank-0.h5, rank-1.h5, ...  each rank's pieces: contiguous datasets, named by tensor
//   checkpoint.h5              virtual datasets that show whole tensors, and scalars; for h5py and viewers
//   only manifest.json              names, sizes and hashes of the files above, every tensor and piece, and
//   the state. Written
//                              last, synced and renamed into place: it is the commit point
// beside it a link, `latest`, moves to it once the manifest is durable.

inline constexpr const char* kLatest = "latest";
inline constexpr std::string_view kModelPrefix = "model/";  // of the names of parameters and buffers
inline constexpr std::string_view kOptimizersPrefix = "optimizers/";  // of the optimizer's tensors

// Rows of one tensor that a rank saves. `name` is "model/<parameter>", "optimizers/<parameter>/<state>", ...
struct CheckpointPiece {
  std::string name;
  Shape shape;   // of the whole tensor
  Shape offset;  // of this piece
  Shape extent;
  at::ScalarType dtype = at::kFloat;
  at::Tensor
      tensor;       // on the CPU, contiguous, sizes = extent; may be undefined where only the layout matters
  uint64_t at = 0;  // byte offset of its data in the rank's file; write_rank_file sets it
};

// What a rank wrote: one line of the manifest. checkpoint.h5 gets a line too, without pieces.
struct RankFile {
  std::string file;  // "rank-0.h5"
  uint64_t bytes = 0;
  uint64_t hash = 0;                    // XXH3 of the whole file
  std::vector<CheckpointPiece> pieces;  // tensors undefined
};

struct CheckpointManifest {
  std::vector<RankFile> files;
  std::string state;  // JSON: time, seeds, data position, recipe, ...; the same on every rank

  std::string to_json() const;                                   // with a hash of its own
  static CheckpointManifest from_json(const std::string& text);  // throws OperatingError
};

// Writes folder/rank-<rank>.h5 and syncs it. Creates the folder. Pieces without elements get no dataset.
// `last`: of the file that this rank wrote before; may be null. Throws OperatingError (disk full, ...).
RankFile write_rank_file(Disk& disk, const std::string& folder, int rank,
                         const std::vector<CheckpointPiece>& pieces, Hdf5Layout* last = nullptr);

// Once every rank's file is durable in the folder `unfinished`: writes checkpoint.h5 there, then the
// manifest, renames the folder to `folder` (an older one of that name is replaced), then moves the link
// `latest` (in the parent; "" = none) to it, each step synced. Files of an earlier attempt that the manifest
// does not name are removed. `last`: of the checkpoint.h5 before; may be null. Rank 0 only.
void publish_checkpoint(Disk& disk, const std::string& unfinished, const std::string& folder,
                        const CheckpointManifest& manifest, const std::string& latest = kLatest,
                        Hdf5Layout* last = nullptr);

// Names of the published checkpoints below `checkpoints` that fit, oldest first.
std::vector<std::string> published_checkpoints(const Disk& disk, const std::string& checkpoints,
                                               const CheckpointNames& names = CheckpointNames());

// Folders of the checkpoints that a path stands for, best first: itself, or those of a run's folder or of a
// folder of checkpoints, whatever their names.
std::vector<std::string> checkpoints_at(const Disk& disk, const std::string& path);

// Whole tensors by name, put together from every rank's pieces, whatever world size wrote them.
struct Checkpoint {
  std::string folder;
  std::string state;
  std::map<std::string, at::Tensor> tensors;
};

// Reads a checkpoint after checking the manifest, each file's size and hash. Throws OperatingError naming the
// file and what is wrong with it (missing, truncated at N of M bytes, hash).
Checkpoint read_checkpoint(const Disk& disk, const std::string& folder);
CheckpointManifest read_manifest(const Disk& disk, const std::string& folder);

// Names of the checkpoints of a run, and of the link to its newest.
struct CheckpointSet {
  CheckpointNames names;
  std::string latest = kLatest;  // "" = none
};

// Names of the published checkpoints of a set in the order in which they are tried: the one that `latest`
// stands for, then the newest.
std::vector<std::string> checkpoints_to_try(const Disk& disk, const std::string& checkpoints,
                                            const CheckpointSet& set = {});

// The newest good one of a set below `checkpoints` (the first good one of those to try), reading it. Each bad
// one is named through `on_bad`. Empty folder when there is none.
Checkpoint newest_good_checkpoint(const Disk& disk, const std::string& checkpoints,
                                  const std::function<void(const std::string&)>& on_bad,
                                  const CheckpointSet& set = {});

// The checkpoint that a path stands for: the one in this folder, or the newest good one of a run's folder or
// of a folder of checkpoints. Throws OperatingError when there is none.
Checkpoint find_checkpoint(const Disk& disk, const std::string& path,
                           const std::function<void(const std::string&)>& on_bad);

// Removes what was not published yet, or was replaced, when its writer was killed, of checkpoints with such
// names. No other run may be writing here.
void remove_unpublished(Disk& disk, const std::string& checkpoints,
                        const CheckpointNames& names = CheckpointNames());
// One that was being replaced when its writer was killed, and whose successor did not take its place, is
// there again. No other run may be writing here.
void restore_replaced(Disk& disk, const std::string& checkpoints,
                      const CheckpointNames& names = CheckpointNames());

// Removes a checkpoint, finished or not, its manifest first: a crash on the way leaves one without, never a
// torn one.
void remove_checkpoint(Disk& disk, const std::string& folder);

// Copies a published checkpoint to `folder`, which must not exist and appears whole. Throws OperatingError.
void copy_checkpoint(Disk& disk, const std::string& checkpoint, const std::string& folder);

// One hash over all whole tensors whose names begin with `prefix`, in name order: name, dtype, shape, bytes.
// The same for any world size and sharding.
uint64_t tensors_digest(const std::map<std::string, at::Tensor>& tensors, std::string_view prefix = "");
// Of those under "model/" (parameters and buffers).
uint64_t weights_digest(const std::map<std::string, at::Tensor>& tensors);

}  // namespace tutti

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/checkpoint_names.h"
#include "io/hdf5/hdf5_writer.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "tensors/placement.h"

namespace tutti {

// A checkpoint is a folder:
//   rank-0.h5, rank-1.h5, ...  each rank's pieces: contiguous datasets, named by tensor
//   checkpoint.h5              virtual datasets that show whole tensors, and scalars; for h5py and viewers
//   manifest.json              names, sizes and hashes of the files, all tensors and pieces, and the state.
//                              Written last, synced and renamed into place: the commit point
// When the manifest is durable, the link `latest` in the parent folder is moved to the checkpoint.

inline constexpr const char* kLatest = "latest";
// The link to the best checkpoint, by [checkpoint] best.
inline constexpr const char* kBest = "best";
inline constexpr std::string_view kModelPrefix = "model/";            // names of parameters and buffers
inline constexpr std::string_view kOptimizersPrefix = "optimizers/";  // names of the optimizer's tensors

// A region of a tensor, saved by one rank. `name` is "model/<parameter>", "optimizers/<parameter>/<state>",
// ...
struct CheckpointPiece {
  std::string name;
  Shape shape;   // of the whole tensor
  Shape offset;  // of this piece
  Shape extent;
  at::ScalarType dtype = at::kFloat;
  at::Tensor tensor;  // on the CPU, contiguous, sizes = extent; may be undefined if only the layout is needed
  uint64_t at = 0;    // byte offset of the data in the rank's file; set by write_rank_file
  Shape strides = {};  // of the data in a file of another program, in numbers; empty: row-major
};

// A file's entry in the manifest. The entry of checkpoint.h5 has no pieces.
struct RankFile {
  std::string file;  // "rank-0.h5"; of another program: an absolute path
  uint64_t bytes = 0;
  uint64_t hash = 0;                    // XXH3 of the whole file; 0: not known, for another program's
  std::vector<CheckpointPiece> pieces;  // tensors undefined
};

struct CheckpointManifest {
  std::vector<RankFile> files;
  std::string state;  // JSON: time, seeds, data position, recipe, ...; the same on every rank

  std::string to_json() const;                                   // with a hash of the manifest itself
  static CheckpointManifest from_json(const std::string& text);  // throws OperatingError
};

// Writes folder/rank-<rank>.h5, syncs the file, and creates the folder if needed. Pieces without elements get
// no dataset. `last`: layout of the rank's previous file; may be null. Throws OperatingError.
RankFile write_rank_file(Disk& disk, const std::string& folder, int rank,
                         const std::vector<CheckpointPiece>& pieces, Hdf5Layout* last = nullptr);

// Writes folder/checkpoint.h5, which shows the whole tensors of the manifest's files. Throws OperatingError.
RankFile write_viewer(Disk& disk, const std::string& folder, const CheckpointManifest& manifest,
                      Hdf5Layout* last = nullptr);

// Writes the manifest of a checkpoint without files of its own: another program's. Throws OperatingError.
void write_manifest(Disk& disk, const std::string& folder, const CheckpointManifest& manifest);

// Publishes the checkpoint in the folder `unfinished`, where every rank's file must be durable. Writes
// checkpoint.h5 and the manifest, renames the folder to `folder` (replacing an older folder), then moves the
// link `latest` (in the parent; "" = none); each step is synced. Removes files that the manifest does not
// name. `last`: layout of the previous checkpoint.h5; may be null. Rank 0 only.
void publish_checkpoint(Disk& disk, const std::string& unfinished, const std::string& folder,
                        const CheckpointManifest& manifest, const std::string& latest = kLatest,
                        Hdf5Layout* last = nullptr);

// Names of the published checkpoints in `checkpoints` that fit `names`, oldest first.
std::vector<std::string> published_checkpoints(const Disk& disk, const std::string& checkpoints,
                                               const CheckpointNames& names = CheckpointNames());

// Folders of the checkpoints at a path, best first: the path, if a checkpoint, else all checkpoints of a
// run's folder or of a folder of checkpoints, with any names.
std::vector<std::string> checkpoints_at(const Disk& disk, const std::string& path);

// A published checkpoint. CheckpointTensors (checkpoint_tensors.h) reads its tensors.
struct Checkpoint {
  std::string folder;
  CheckpointManifest manifest;
};

std::string path_of(const Checkpoint& checkpoint, const RankFile& file);

CheckpointManifest read_manifest(const Disk& disk, const std::string& folder);
// Reads the manifest, and checks that its pieces make up whole tensors. Throws OperatingError with the file
// and the problem. The other files are for verify_files.
Checkpoint open_checkpoint(const Disk& disk, const std::string& folder);

// Checks size and hash of the checkpoint's files; of several ranks each checks files index, index + size, ...
// Throws OperatingError with the first bad file and the problem (missing, truncated at N of M bytes, hash).
void verify_files(const Disk& disk, const Checkpoint& checkpoint, const AxisRank& rank = {});

// Names of a run's checkpoints, and of the link to the newest.
struct CheckpointSet {
  CheckpointNames names;
  std::string latest = kLatest;  // "" = none
};

// Names of the published checkpoints of a set in the order of trial: the target of `latest` first, then the
// newest first.
std::vector<std::string> checkpoints_to_try(const Disk& disk, const std::string& checkpoints,
                                            const CheckpointSet& set = {});

// Options of the search for a good checkpoint. `verify` throws OperatingError for a bad checkpoint; empty:
// verify_files on all files. `on_bad` is called for each bad checkpoint.
struct CheckpointSearch {
  Warn on_bad;
  std::function<void(const Checkpoint&)> verify = {};
};

// Opens the first good checkpoint of checkpoints_to_try. If there is none, `folder` is empty.
Checkpoint newest_good_checkpoint(const Disk& disk, const std::string& checkpoints,
                                  const CheckpointSearch& search, const CheckpointSet& set = {});

// Opens the first good checkpoint of checkpoints_at. Throws OperatingError if there is none.
Checkpoint find_checkpoint(const Disk& disk, const std::string& path, const CheckpointSearch& search);

// Removes unpublished and replaced checkpoints of a killed run. No other run may write to this folder.
void remove_unpublished(Disk& disk, const std::string& checkpoints,
                        const CheckpointNames& names = CheckpointNames());
// Restores a checkpoint that was moved aside for its replacement, if the run was killed before the
// replacement was in place. No other run may write to this folder.
void restore_replaced(Disk& disk, const std::string& checkpoints,
                      const CheckpointNames& names = CheckpointNames());

// Removes a checkpoint, finished or not. Removes the manifest first, so that a crash never leaves a torn
// checkpoint with a manifest.
void remove_checkpoint(Disk& disk, const std::string& folder);

// Copies a published checkpoint to `folder`, which must not exist and appears whole. Throws OperatingError.
void copy_checkpoint(Disk& disk, const std::string& checkpoint, const std::string& folder);

}  // namespace tutti

#include "io/checkpoint/checkpoint_tensors.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

// True if a tensor of this shape and dtype takes at most `bytes`. Sizes are not negative.
bool takes_at_most(uint64_t bytes, const Shape& shape, at::ScalarType dtype) {
  uint64_t taken = c10::elementSize(dtype);
  for (const int64_t size : shape)
    if (size != 0 && __builtin_mul_overflow(taken, static_cast<uint64_t>(size), &taken)) return false;
  return taken <= bytes || std::ranges::count(shape, 0) > 0;
}

// True if the numbers of the piece take at most `bytes` from its first number on.
bool lies_within(uint64_t bytes, const CheckpointPiece& piece) {
  if (piece.strides.empty() || std::ranges::count(piece.extent, 0) > 0)
    return takes_at_most(bytes, piece.extent, piece.dtype);
  if (piece.strides.size() != piece.extent.size()) return false;
  int64_t last = 0;
  for (std::size_t d = 0; d < piece.extent.size(); ++d) {
    int64_t way = 0;
    if (piece.strides[d] < 0 || __builtin_mul_overflow(piece.extent[d] - 1, piece.strides[d], &way) ||
        __builtin_add_overflow(last, way, &last) || last == INT64_MAX)
      return false;
  }
  return takes_at_most(bytes, {last + 1}, piece.dtype);
}

void check_piece(const std::string& path, const RankFile& file, const CheckpointPiece& piece,
                 uint64_t bytes_of_all) {
  bool inside = piece.offset.size() == piece.shape.size() && piece.extent.size() == piece.shape.size();
  for (size_t i = 0; inside && i < piece.shape.size(); ++i) {
    inside = piece.offset[i] >= 0 && piece.extent[i] >= 0 && piece.extent[i] <= piece.shape[i] &&
             piece.offset[i] <= piece.shape[i] - piece.extent[i];
  }
  inside = inside && piece.at <= file.bytes && lies_within(file.bytes - piece.at, piece);
  if (inside && !takes_at_most(bytes_of_all, piece.shape, piece.dtype))
    throw OperatingError(path + ": " + piece.name + ": its pieces hold less than the whole tensor");
  if (!inside) throw OperatingError(path + ": " + piece.name + " lies outside of its tensor or of the file");
}

// Both pieces must have elements.
bool overlap(const CheckpointPiece& first, const CheckpointPiece& second) {
  for (std::size_t i = 0; i < first.shape.size(); ++i)
    if (first.offset[i] >= second.offset[i] + second.extent[i] ||
        second.offset[i] >= first.offset[i] + first.extent[i])
      return false;
  return true;
}

// Compares each piece with pieces that begin before its last row ends.
bool any_overlap(std::vector<const CheckpointPiece*> pieces) {
  std::erase_if(pieces, [](const auto* piece) { return c10::multiply_integers(piece->extent) == 0; });
  std::ranges::sort(pieces, {}, &CheckpointPiece::offset);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (std::size_t j = i + 1; j < pieces.size(); ++j) {
      if (overlap(*pieces[i], *pieces[j])) return true;
      if (pieces[j]->offset[0] >= pieces[i]->offset[0] + pieces[i]->extent[0]) break;
    }
  return false;
}

// The layout of a piece in the whole tensor: runs of neighbouring numbers, one for each index of the outer
// dimensions. A piece of whole rows is one run.
struct Runs {
  explicit Runs(const CheckpointPiece& of) : piece(of), outer(of.shape.size()), length(1) {
    bool whole = true;  // the dimensions behind `outer`
    while (whole && outer > 0) {
      --outer;
      length *= piece.extent[outer];
      whole = piece.extent[outer] == piece.shape[outer];
    }
  }

  int64_t count() const {
    return c10::multiply_integers(piece.extent.begin(), piece.extent.begin() + static_cast<int64_t>(outer));
  }

  // The place of the run's first number in the whole tensor.
  int64_t place(int64_t run) const {
    int64_t place = 0, stride = 1;
    for (std::size_t i = piece.shape.size(); i-- > 0;) {
      const int64_t index = i < outer ? run % piece.extent[i] : 0;
      if (i < outer) run /= piece.extent[i];
      place += (piece.offset[i] + index) * stride;
      stride *= piece.shape[i];
    }
    return place;
  }

  const CheckpointPiece& piece;
  std::size_t outer;  // number of dimensions
  int64_t length;     // of a run
};

}  // namespace

CheckpointTensors::CheckpointTensors(const Disk& disk, Checkpoint checkpoint, std::string_view prefix)
    : disk_(disk), checkpoint_(std::move(checkpoint)) {
  uint64_t bytes = 0;
  for (const RankFile& file : checkpoint_.manifest.files) bytes += file.bytes;
  for (const RankFile& file : checkpoint_.manifest.files) {
    for (const CheckpointPiece& piece : file.pieces) check_piece(path_of(file), file, piece, bytes);
    add(file, prefix);
  }
  require_whole();
}

void CheckpointTensors::add(const RankFile& file, std::string_view prefix) {
  for (const CheckpointPiece& piece : file.pieces) {
    if (!piece.name.starts_with(prefix)) continue;
    const std::string name = piece.name.substr(prefix.size());
    const Entry& known = entries_.try_emplace(name, Entry{piece.shape, piece.dtype}).first->second;
    if (known.shape != piece.shape || known.dtype != piece.dtype)
      throw OperatingError(path_of(file) + ": " + piece.name +
                           " has another shape or dtype than in the other files");
    parts_[name].push_back({&file, &piece});
  }
}

void CheckpointTensors::require_whole() const {
  for (const auto& [name, parts] : parts_) {
    int64_t covered = 0;
    std::vector<const CheckpointPiece*> pieces;
    for (const Part& part : parts) {
      covered += c10::multiply_integers(part.piece->extent);
      pieces.push_back(part.piece);
    }
    const int64_t numbers = c10::multiply_integers(at(name).shape);
    const std::string whose = checkpoint_.folder + ": " + pieces[0]->name + ": its pieces ";
    if (covered != numbers)
      throw OperatingError(whose + "hold " + std::to_string(covered) + " of " + std::to_string(numbers) +
                           " elements");
    if (any_overlap(pieces)) throw OperatingError(whose + "overlap");
  }
}

void CheckpointTensors::read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const {
  for (const Part& part : parts_.at(name)) read_part(part, first, to);
}

// The numbers of a part that is not in row-major order in its file.
at::Tensor CheckpointTensors::packed(const Part& part) const {
  const CheckpointPiece& piece = *part.piece;
  int64_t span = 1;
  for (std::size_t d = 0; d < piece.extent.size(); ++d) span += (piece.extent[d] - 1) * piece.strides[d];
  const at::Tensor numbers = at::empty({span}, piece.dtype);
  disk_.read_into(path_of(*part.file), piece.at,
                  {static_cast<std::byte*>(numbers.mutable_data_ptr()), numbers.nbytes()});
  return numbers.as_strided(piece.extent, piece.strides).contiguous();
}

// Reads what the part has of the numbers from `first` on.
void CheckpointTensors::read_part(const Part& part, int64_t first, std::span<std::byte> to) const {
  const auto item = static_cast<int64_t>(c10::elementSize(part.piece->dtype));
  const int64_t last = first + static_cast<int64_t>(to.size()) / item;
  const Runs runs(*part.piece);
  at::Tensor in_memory;
  for (int64_t run = 0; run < runs.count(); ++run) {
    const int64_t place = runs.place(run);
    const int64_t begin = std::max(first, place), end = std::min(last, place + runs.length);
    if (begin >= end) continue;
    const int64_t offset = (run * runs.length + begin - place) * item;
    const auto into = to.subspan((begin - first) * item, (end - begin) * item);
    if (part.piece->strides.empty()) {
      disk_.read_into(path_of(*part.file), part.piece->at + offset, into);
      continue;
    }
    if (!in_memory.defined()) in_memory = packed(part);
    std::memcpy(into.data(), static_cast<const std::byte*>(in_memory.const_data_ptr()) + offset, into.size());
  }
}

}  // namespace tutti

#include "data/arrays/array_rows.h"

#include <cstring>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

class ContiguousRows final : public ArrayRows {
 public:
  ContiguousRows(std::shared_ptr<const void> owner, std::span<const std::byte> all, int64_t rows)
      : owner_(std::move(owner)),
        all_(all),
        rows_(rows),
        bytes_(rows > 0 ? all.size() / static_cast<size_t>(rows) : 0) {}

  void gather(std::span<const int64_t> rows, std::byte* to) const override {
    for (const int64_t row : rows) {
      TUTTI_ASSERT(row >= 0 && row < rows_, "row " + std::to_string(row));
      std::memcpy(to, all_.data() + static_cast<size_t>(row) * bytes_, bytes_);
      to += bytes_;
    }
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> all_;
  int64_t rows_;
  size_t bytes_;  // of a row
};

}  // namespace

ArrayRowsPtr contiguous_rows(std::shared_ptr<const void> owner, std::span<const std::byte> all,
                             int64_t rows) {
  return std::make_unique<const ContiguousRows>(std::move(owner), all, rows);
}

}  // namespace tutti

#include "io/tables/parquet_file.h"

#include <dlfcn.h>

#include <filesystem>
#include <new>
#include <set>
#include <utility>

#include "io/tables/parquet_entry.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/process/this_process.h"
#include "runtime/regular_file.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr const char* kLibrary = "libtutti_parquet.so";

// Beside this code or above it in a build tree, and in the folder of libraries of an installation.
std::string library_path() {
  const auto folder =
      std::filesystem::path(path_of_code(reinterpret_cast<void*>(&library_path))).parent_path();
  for (const char* place : {".", ".."})
    if (const auto path = folder / place / kLibrary; std::filesystem::exists(path)) return path;
  return folder / "../lib" / kLibrary;
}

// A function of the library.
template <class Function>
Function* from_library(const char* name) {
  void* library = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library)
    throw UserError(std::string("this tutti has no Parquet: ") + dlerror() +
                    "; built without pyarrow (make setup)? docs/data.md says how to convert");
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// Adds the path to the errors of the library.
template <class Work>
auto blaming(const std::string& path, const Work& work) try {
  return work();
} catch (const RunError&) {
  throw;
} catch (const std::bad_alloc&) {
  throw RunError(EndKind::kOutOfMemoryElsewhere, {path}, "too large for this machine's memory, or damaged");
} catch (const std::exception& error) {
  throw UserError({path}, shown(error.what()));
}

class ParquetFile final : public TableFile {
 public:
  explicit ParquetFile(const std::string& path)
      : path_(path), table_(blaming(path, [&] { return opened(path); })) {
    std::set<std::string> names;
    for (const TableColumn& column : columns())
      if (!names.insert(column.name).second)
        throw UserError({path}, "two columns are named '" + shown(column.name) + "'");
  }

  const std::vector<TableColumn>& columns() const override { return table_->columns(); }
  int64_t most_rows() const override { return table_->most_rows(); }
  const std::string& path() const override { return path_; }
  std::string place() const override { return table_->place(); }
  void read(const std::vector<WantedColumn>& columns, const VisitRow& visit) override {
    blaming(path_, [&] { table_->read(columns, visit); });
  }

 private:
  static TableFile* opened(const std::string& path) {
    return from_library<decltype(tutti_open_parquet)>("tutti_open_parquet")(path.c_str());
  }

  std::string path_;
  std::unique_ptr<TableFile> table_;
};

class ParquetWriter final : public TableWriter {
 public:
  explicit ParquetWriter(const std::string& path)
      : path_(path), rows_(blaming(path, [&] {
          return from_library<decltype(tutti_write_parquet)>("tutti_write_parquet")(path.c_str());
        })) {}

  void add(const WrittenRows& rows) override {
    WrittenRows valid = rows;
    for (WrittenColumn& column : valid) {
      column.name = as_utf8(column.name);
      if (auto* texts = std::get_if<std::vector<std::string>>(&column.cells))
        for (std::string& text : *texts) text = as_utf8(text);
    }
    blaming(path_, [&] { rows_->add(valid); });
  }
  void finish() override {
    blaming(path_, [&] { rows_->finish(); });
  }

 private:
  std::string path_;
  std::unique_ptr<TableWriter> rows_;
};

}  // namespace

std::unique_ptr<TableFile> open_parquet(const std::string& path) {
  const RegularFile file(path);
  if (!file.problem().empty()) throw UserError({path}, file.problem());
  return std::make_unique<ParquetFile>(path);
}

std::unique_ptr<TableWriter> parquet_writer(const std::string& path) {
  return std::make_unique<ParquetWriter>(path);
}

}  // namespace tutti

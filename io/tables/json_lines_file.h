#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/mapped_file.h"
#include "io/tables/table_file.h"

namespace tutti {

// JSON: an object in each line, or an array of objects, whose members are cells; columns are named as the
// members of the first kInspectedRows. True and false are 1 and 0, null and absent members are missing.
// Mapped.
class JsonLinesFile final : public TableFile {
 public:
  // Throws UserError with file, line, column and value, also of read.
  explicit JsonLinesFile(const std::string& path);

  const std::vector<TableColumn>& columns() const override { return columns_; }
  int64_t most_rows() const override;
  void read(const std::vector<WantedColumn>& columns, const VisitRow& visit) override;
  const std::string& path() const override { return file_.path(); }
  std::string place() const override { return place_; }

 private:
  // Calls visit with each object, until visit returns false.
  template <class Visit>
  void for_each_object(const Visit& visit);
  template <class Json>
  double number_of(const Json& value, const std::string& column) const;
  template <class Json>
  std::string_view text_of(const Json& value, const std::string& column, std::string& scratch) const;
  [[noreturn]] void fail(const std::string& message) const;

  MappedFile file_;
  std::string_view text_;
  std::vector<TableColumn> columns_;
  std::string place_;  // of the object being visited
};

}  // namespace tutti

#include "recipe/glossary.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

enum class Above { kNoNames, kNames, kPlaces };  // what an indented line follows

class GlossaryReader {
 public:
  explicit GlossaryReader(std::string file) : file_(std::move(file)) {}

  std::vector<GlossaryEntry> read(std::string_view table) {
    for (line_ = 1; !table.empty(); ++line_) {
      const std::string_view line = table.substr(0, table.find('\n'));
      read_line(line);
      table.remove_prefix(std::min(line.size() + 1, table.size()));
    }
    check(head_.empty(), "names end with a comma");
    check_last_entry();
    return std::move(entries_);
  }

 private:
  void check(bool holds, const char* fault) const {
    TUTTI_ASSERT(holds, file_ + ':' + std::to_string(line_) + ": " + fault);
  }

  void read_line(std::string_view line) {
    check(line.find('\t') == line.npos, "a tab");
    check(!line.ends_with(' ') && !line.ends_with('\r'), "a blank at the end");
    if (head_.empty() && (line.empty() || line.starts_with('#'))) return;
    if (line.starts_with("== ")) return read_heading(line);
    line.starts_with("  ") ? read_below(line.substr(2)) : read_names(line);
  }

  void read_heading(std::string_view line) {
    check(head_.empty(), "a heading among names");
    check(line.size() > 6 && line.ends_with(" =="), "a heading is == WORDS ==");
    heading_ = line.substr(3, line.size() - 6);
    above_ = Above::kNoNames;
  }

  void read_names(std::string_view line) {
    head_ += line;
    if (line.ends_with(',')) {
      head_ += ' ';
      return;
    }
    check_last_entry();
    std::vector<std::string> places = parts(std::exchange(head_, ""), " > ");
    entries_.push_back({heading_, parts(places[0], ", ")});
    entries_.back().places.assign(places.begin() + 1, places.end());
    for (const std::string& name : entries_.back().names)
      check(name.find(',') == name.npos, "a comma without a blank, or two commas");
    above_ = Above::kNames;
  }

  void read_below(std::string_view line) {
    check(head_.empty() && above_ != Above::kNoNames, "an indented line without names above");
    check(!line.starts_with(' '), "two blanks indent a line");
    GlossaryEntry& entry = entries_.back();
    if (line.starts_with("> ")) {
      entry.places.emplace_back(line.substr(2));
      above_ = Above::kPlaces;
      return;
    }
    check(above_ != Above::kPlaces, "text stands above the places");
    entry.text += (entry.text.empty() ? "" : " ") + std::string(line);
  }

  void check_last_entry() const {
    check(entries_.empty() || !entries_.back().text.empty() || !entries_.back().places.empty(),
          "the names above have neither a text nor a place");
  }

  std::vector<std::string> parts(std::string_view text, std::string_view separator) const {
    std::vector<std::string> all;
    while (true) {
      const std::string_view part = text.substr(0, text.find(separator));
      check(!part.empty() && !part.starts_with(' ') && !part.ends_with(' '), "an empty name or place");
      all.emplace_back(part);
      if (part.size() == text.size()) return all;
      text.remove_prefix(part.size() + separator.size());
    }
  }

  std::string file_, heading_;
  std::string head_;  // names whose last line ended with a comma
  int line_ = 0;
  Above above_ = Above::kNoNames;
  std::vector<GlossaryEntry> entries_;
};

}  // namespace

std::vector<GlossaryEntry> read_glossary(const std::string& file, std::string_view table) {
  return GlossaryReader(file).read(table);
}

}  // namespace tutti

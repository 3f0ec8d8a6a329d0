#include "cli/help/shell_text.h"

#include <algorithm>

namespace tutti {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string short_doc(const std::string& doc) {
  return doc.substr(0, std::min({doc.find("; "), doc.find(": "), doc.find(" (")}));
}

}  // namespace tutti

#include "recipe/put_in.h"

namespace tutti {

void put_in(std::string& text, const std::string& field, const std::string& value) {
  for (auto at = text.find(field); at != std::string::npos; at = text.find(field, at + value.size()))
    text.replace(at, field.size(), value);
}

}  // namespace tutti

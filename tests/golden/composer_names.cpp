#include "tests/golden/composer_names.h"

#include <stdexcept>

#include "job/names/foreign_names.h"

namespace tutti {

std::string recipe_kind(const std::string& section, const std::string& composer_class) {
  const std::string name = composer_class.substr(composer_class.rfind('.') + 1);
  const std::string begin = section + " kind = \"";
  for (const ForeignName& known : composer_names())
    if (known.name == name && known.target.starts_with(begin))
      return known.target.substr(begin.size(), known.target.size() - begin.size() - 1);
  throw std::logic_error("no test knows " + composer_class + " as a " + section);
}

bool is_of_no_number(const std::string& argument) {
  return argument == "foreach" || argument == "fused" || argument == "capturable" ||
         argument == "differentiable";
}

}  // namespace tutti

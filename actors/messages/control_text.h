#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "actors/messages/messages.h"

namespace tutti {

// A control packet between Supervisors: a verb and fields, separated by the byte 0x1f, which becomes ? in a
// field.
class ControlText {
 public:
  ControlText(std::initializer_list<std::string> fields) : fields_(fields) {}
  static ControlText parse(const std::string& text);

  const std::string& verb() const { return fields_.at(0); }
  const std::string& field(std::size_t index) const { return fields_.at(index); }
  std::string text() const;

 private:
  std::vector<std::string> fields_;
};

// A verb and how the run ends.
std::string end_order(const std::string& verb, const RankEnd& end);
RankEnd parse_end(const ControlText& text);

std::string durable_text(const Durable& part);
Durable parse_durable(const ControlText& text);

}  // namespace tutti

#include "training/metrics/logged_metrics.h"

#include "recipe/catalog.h"

namespace tutti {

std::string logged_name(const Setting& metric, const std::vector<std::string>& measured) {
  const std::string ending = '/' + metric.text();
  std::vector<std::string> fitting;
  for (const auto& name : measured)
    if (('/' + name).ends_with(ending)) fitting.push_back(name);
  if (fitting.size() == 1) return fitting[0];
  if (measured.empty()) metric.fail("never measured: there is no [data.eval], or [train] eval_interval is 0");
  if (fitting.empty()) metric.fail("not measured by any evaluator; expected one of " + joined(measured));
  metric.fail("expected one metric, and this fits " + joined(fitting));
}

}  // namespace tutti

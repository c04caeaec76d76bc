#include "common/stage/tunable.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace convladder {
namespace {

int place_of(const Knobs& knobs, const char* name) {
  for (int k = 0; k < knobs.count; ++k)
    if (std::strcmp(knobs.knobs[k].name, name) == 0) return k;
  throw std::logic_error(std::string("there is no knob ") + name);
}

}  // namespace

Configuration::Configuration() : values{} {}

Configuration::Configuration(const Knobs& all) : knobs(all), values{} {
  for (int k = 0; k < all.count; ++k) values[k] = all.knobs[k].usual;
}

int Configuration::operator[](const char* name) const { return values[place_of(knobs, name)]; }

int& Configuration::operator[](const char* name) { return values[place_of(knobs, name)]; }

TunableStage::TunableStage() = default;
TunableStage::~TunableStage() = default;

Verdict TunableStage::check_configuration(const ConvProblem&, const DeviceLimits&, const Configuration&) const {
  return Verdict::accept();
}

Configuration TunableStage::default_configuration(const ConvProblem&, const DeviceLimits&) const { return knobs(); }

Configuration TunableStage::decided(const ConvProblem&, const DeviceLimits&, const Configuration& configuration) const {
  return configuration;
}

void TunableStage::use(const Configuration& configuration) { used_ = configuration; }

Configuration TunableStage::configuration() const { return used_.knobs.count > 0 ? used_ : Configuration(knobs()); }

int TunableStage::knob(const char* name) const { return used_.knobs.count > 0 ? used_[name] : configuration()[name]; }

}  // namespace convladder

# shellcheck shell=bash disable=SC2034
# What the scripts of OSWorld share: sets `shown`, the settings of the observation type that OBSERVATION names. It is sourced.
case "${OBSERVATION:-a11y_tree}" in
  a11y_tree) shown=() ;;
  screenshot) shown=(policy.images=true policy.text=false value.images=true) ;;
  screenshot_a11y_tree) shown=(policy.images=true value.images=true) ;;
  som)
    shown=(policy.images=true policy.marks=true value.images=true value.marks=true)
    [ -n "${EXACT_OSWORLD_OPTIONS-}" ] || export EXACT_OSWORLD_OPTIONS='{"action_space": "elements"}' # an element is named by its mark
    ;;
  *)
    echo "OBSERVATION=$OBSERVATION: choose a11y_tree, screenshot, screenshot_a11y_tree or som" >&2
    exit 2
    ;;
esac

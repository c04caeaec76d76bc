MathJax.Hub.Config({showMathMenu: false, messageStyle: "none", TeX: {noErrors: {disabled: true}}});

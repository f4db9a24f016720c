"use strict";
// The page of an attempt that never began: it has colours to choose and nothing else.

themed();

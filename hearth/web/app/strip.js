var e=new Set(`	
\v\f\r \xA0            \u2028\u2029  　`);function t(t){let n=0,r=t.length;for(;n<r&&e.has(t.charAt(n));)n+=1;for(;n<r&&e.has(t.charAt(r-1));)--r;return t.slice(n,r)}export{t};
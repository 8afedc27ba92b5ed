package report

// style is the stylesheet of all pages: one column of text and as many of charts as fit, nothing
// fetched, light or dark as the system is, and light on paper. Colours are variables, and the test
// computes their contrast. Content wider than a phone scrolls by itself, with a shadow at the edge
// where there is more: the first two backgrounds move with the content and cover the two that stay.
const style = `:root{color-scheme:light dark;--text:#1c1e21;--dim:#555b65;--edge:#dfe2e7;--back:#fff;--panel:#f5f6f8;--link:#00598c;--good:#1a7f37;--bad:#b42318;--doubt:#8a5a00;--on:#fff}
@media screen and (prefers-color-scheme:dark){:root{--text:#e8eaed;--dim:#a8aeb8;--edge:#363c46;--back:#15181d;--panel:#1f242c;--link:#7cc4f0;--good:#5fd07f;--bad:#ff8d80;--doubt:#f0b64a;--on:#15181d}
svg [fill="#ffffff"]{fill:var(--back)}svg [fill="#222222"]{fill:var(--text)}svg [stroke="#222222"]{stroke:var(--text)}svg [fill="#555555"]{fill:var(--dim)}svg [stroke="#555555"]{stroke:var(--dim)}svg [stroke="#e4e4e4"]{stroke:var(--edge)}
svg [fill="#0072b2"]{fill:#4aa3df}svg [stroke="#0072b2"]{stroke:#4aa3df}svg [fill="#d55e00"]{fill:#ff8a3d}svg [stroke="#d55e00"]{stroke:#ff8a3d}svg [fill="#009e73"]{fill:#2fc79a}svg [stroke="#009e73"]{stroke:#2fc79a}
svg [fill="#cc79a7"]{fill:#e39cc4}svg [stroke="#cc79a7"]{stroke:#e39cc4}svg [fill="#e69f00"]{fill:#f2c14e}svg [stroke="#e69f00"]{stroke:#f2c14e}svg [fill="#56b4e9"]{fill:#b9def5}svg [stroke="#56b4e9"]{stroke:#b9def5}
svg [fill="#000000"]{fill:var(--text)}svg [stroke="#000000"]{stroke:var(--text)}svg [fill="#a0522d"]{fill:#c98a63}svg [stroke="#a0522d"]{stroke:#c98a63}figure img{filter:invert(.91) hue-rotate(180deg)}}
*{box-sizing:border-box}
body{font:15px/1.5 "Liberation Sans",Arial,Helvetica,sans-serif;color:var(--text);background:var(--back);margin:0 auto;max-width:76rem;padding:1rem 1.25rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:.3rem 0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--edge);padding-bottom:.25rem}
p{max-width:48rem;margin:.4rem 0}p.sub,small,th,dt,.tiles dt{color:var(--dim)}a{color:var(--link)}nav{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;font-size:.9rem}
.verdict{display:inline-block;padding:.3rem .8rem;border-radius:.4rem;font-weight:600;color:var(--on);background:var(--good)}.verdict.bad{background:var(--bad)}.verdict.doubt{background:var(--doubt)}
.note{border-left:.25rem solid var(--edge);padding-left:.7rem}.note.doubt{border-color:var(--doubt)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(max(8rem,(100% - (var(--n) - 1)*.6rem)/var(--n) - 1px),1fr));gap:.6rem;margin:1rem 0}.tiles div{background:var(--panel);border-radius:.5rem;padding:.55rem .8rem}.tiles dt{font-size:.82rem}.tiles dd{font-size:1.2rem;font-weight:600;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;margin:.8rem 0;background:linear-gradient(to right,var(--back) 40%,transparent) 0 0/3rem 100%,linear-gradient(to left,var(--back) 40%,transparent) 100% 0/3rem 100%,
linear-gradient(to right,#0005,#0000) 0 0/.8rem 100%,linear-gradient(to left,#0005,#0000) 100% 0/.8rem 100%,var(--back);background-repeat:no-repeat;background-attachment:local,local,scroll,scroll}
.tall{max-height:34rem;overflow-y:auto}.tall thead th{position:sticky;top:0;background:var(--back)}
table{border-collapse:collapse;font-size:.9rem}td,th{text-align:left;padding:.25rem 1.1rem .25rem 0;border-bottom:1px solid var(--edge);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}th{font-weight:600}tbody tr:hover td{background:var(--panel)}
.met,.missed,.skipped{font-weight:600;white-space:nowrap}.met{color:var(--good)}.missed{color:var(--bad)}.skipped{color:var(--doubt)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));gap:1.2rem 1.6rem}figure{margin:0;break-inside:avoid;min-width:0}figure svg,figure img{width:100%;height:auto;display:block}figure:has(img),figure:has(svg+svg){grid-column:1/-1}figure:has(svg+svg){display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr));gap:1.2rem 1.6rem}figure img{max-width:62rem}
pre{background:var(--panel);border-radius:.4rem;padding:.7rem;overflow-x:auto;font-size:.82rem;white-space:pre-wrap;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:0}dt{font-weight:400}dd{margin:0;overflow-wrap:anywhere}.tiles dl,.tiles{padding:0}
details{margin:.5rem 0}details summary{cursor:pointer;color:var(--link)}:focus-visible{outline:2px solid var(--link);outline-offset:2px}
@media (max-width:40rem){body{padding:.7rem;font-size:16px}.scroll:has(td:nth-child(7)) table{min-width:46rem}.tiles{grid-template-columns:1fr 1fr}.tiles div:last-child:nth-child(odd){grid-column:1/-1}.facts{grid-template-columns:1fr}.facts dt{margin-top:.4rem}}
@media (prefers-reduced-motion:reduce){*{transition:none!important;animation:none!important;scroll-behavior:auto!important}}
@media print{body{max-width:none;font-size:10pt;padding:0}details>*{display:block}details::details-content{content-visibility:visible;block-size:auto}h2{break-after:avoid}nav{display:none}
.scroll,.tall{overflow:visible;max-height:none;background:none}table{font-size:8.5pt}tr,.tiles div{break-inside:avoid}td{overflow-wrap:anywhere}.charts{grid-template-columns:1fr 1fr}
.verdict,.tiles div{print-color-adjust:exact;-webkit-print-color-adjust:exact}a{color:inherit}}`

// layout is the template of all pages. Its content policy forbids fetching, whatever the text of a
// lab holds.
const layout = `{{define "page"}}<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{{.Title}}</title><style>` + style + `</style></head><body>
<header>{{with .Nav}}<nav aria-label="other pages">{{range .}}<a href="{{index . 1}}">{{index . 0}}</a>{{end}}</nav>{{end}}
<h1>{{.Title}}</h1>{{with .About}}<p>{{linked .}}</p>{{end}}{{with .Sub}}<p class="sub">{{.}}</p>{{end}}
<p><span class="verdict {{verdict .Grade}}">{{.Verdict}}</span></p>
{{range .Notes}}<p class="note">{{.}}</p>{{end}}
{{range .Doubts}}<p class="note doubt">{{.}}</p>{{end}}
{{with .Tiles}}<dl class="tiles" style="--n:{{columns (len .)}}">{{range .}}<div><dt>{{.Name}}</dt><dd>{{.Value}}</dd></div>{{end}}</dl>{{end}}</header><main>
{{range .Parts}}<section{{with .ID}} id="{{.}}"{{end}}><h2>{{.Heading}}</h2>{{with .Text}}<p>{{linked .}}</p>{{end}}
{{with .Facts}}<dl class="facts">{{range .}}<dt>{{index . 0}}</dt><dd>{{index . 1}}</dd>{{end}}</dl>{{end}}
{{range .Tables}}{{template "table" .}}{{end}}
{{with .Pictures}}<div class="charts">{{range .}}<figure>{{.}}</figure>
{{end}}</div>{{end}}{{with .Pre}}<pre>{{.}}</pre>{{end}}{{range .Folded}}<details><summary>{{.Summary}}</summary>{{with .Facts}}<dl class="facts">{{range .}}<dt>{{index . 0}}</dt><dd>{{index . 1}}</dd>{{end}}</dl>{{end}}{{range .Tables}}{{template "table" .}}{{end}}{{with .Pre}}<pre>{{.}}</pre>{{end}}</details>{{end}}
</section>{{end}}</main>
<footer><p><small>{{.Footer}}</small></p></footer></body></html>
{{end}}{{define "table"}}{{$t := .}}<div class="scroll{{if gt (len .Rows) 40}} tall{{end}}"{{if gt (len .Rows) 40}} tabindex="0"{{end}}><table>{{if .Head}}<thead><tr>{{range $i, $h := .Head}}<th{{if $t.Number $i}} class="n"{{end}} scope="col">{{$h}}</th>{{end}}</tr></thead>{{end}}
<tbody>{{range .Rows}}<tr>{{range .}}<td class="{{if .Number}}n {{end}}{{class .Mark}}">{{if .Link}}<a href="{{.Link}}">{{.Text}}</a>{{else}}{{linked .Text}}{{end}}</td>{{end}}</tr>
{{end}}</tbody></table></div>{{end}}`

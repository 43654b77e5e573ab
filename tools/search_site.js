// Search a built site as its pages do: node search_site.js FOLDER QUERY... prints the locations found, best first, as JSON.
const fs = require("fs"), path = require("path"), vm = require("vm")

const [folder, ...queries] = process.argv.slice(2)
const workers = path.join(folder, "assets/javascripts/workers")
const [worker] = fs.readdirSync(workers).filter(name => /^search\.\w+\.min\.js$/.test(name))
const index = JSON.parse(fs.readFileSync(path.join(folder, "search/search_index.json"), "utf8"))

// The theme's worker runs here: it takes messages, and posts its answers.
let receive, answer
globalThis.self = globalThis
globalThis.importScripts = () => {}
globalThis.addEventListener = (kind, listener) => { if (kind === "message") receive = listener }
globalThis.postMessage = message => answer(message)
vm.runInThisContext(fs.readFileSync(path.join(workers, worker), "utf8"), { filename: worker })

const SETUP = 0, QUERY = 2
const ask = (type, data) => new Promise((resolve, reject) => {
  answer = resolve
  Promise.resolve(receive({ data: { type, data } })).catch(reject)
})

async function main() {
  await ask(SETUP, { ...index, options: {} })
  const found = {}
  for (const query of queries) {
    const { data } = await ask(QUERY, query)
    found[query] = data.items.flat().map(entry => entry.location)
  }
  console.log(JSON.stringify(found))
}

main()

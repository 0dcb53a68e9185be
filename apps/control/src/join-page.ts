import { createHash } from "node:crypto"

const style = `body{font:16px system-ui;max-width:22rem;margin:15vh auto;padding:0 1rem}
label{display:block;margin:.8rem 0}input{width:100%;font:inherit;padding:.4rem;box-sizing:border-box}
button{font:inherit;padding:.4rem 1rem}`

const script = `const form=document.querySelector("form"),said=document.querySelector("output")
form.onsubmit=async(event)=>{event.preventDefault()
const value=(name)=>form.elements[name].value||undefined
const body=JSON.stringify({code:location.hash.slice(1),name:value("name"),password:value("password")})
const answer=await fetch("/v1/invites/redeem",{method:"POST",headers:{"content-type":"application/json"},body})
const told=await answer.json()
if(!answer.ok){said.textContent=told.error.message;return}
history.replaceState(null,"","/join")
said.textContent="You are signed in as "+told.user.name+"."
form.querySelector("fieldset").disabled=true}`

/** Where an invite's link leads. The code stands after the #, so it is in no log and in no referrer. */
export const joinPage = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Warren</title>
<meta name="viewport" content="width=device-width"><style>${style}</style>
<h1>Welcome to Warren</h1><form><fieldset style="border:0;padding:0">
<label>Name (unless the invite has one) <input name="name" autocomplete="username"></label>
<label>Password for next time (12 characters or more) <input name="password" type="password" minlength="12" autocomplete="new-password"></label>
<button>Join</button></fieldset><p><output></output></p></form><script>${script}</script></html>`

const hashed = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/** Nothing but what is on the page itself. */
export const joinPolicy = [
  "default-src 'none'",
  `script-src ${hashed(script)}`,
  `style-src ${hashed(style)} 'unsafe-hashes' ${hashed("border:0;padding:0")}`,
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ")

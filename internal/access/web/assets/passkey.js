// Passkeys: the browser makes one, or signs a decision with one.
document.addEventListener("submit", (e) => {
  if (!e.target.dataset.passkey) return;
  e.preventDefault();
  usePasskey(e.target);
});

// usePasskey has the browser make a passkey, or sign with one, and sends what it returns.
async function usePasskey(form) {
  const options = JSON.parse(form.dataset.passkey), button = form.querySelector("button");
  button.disabled = true;
  try {
    const made = options.user
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
    form.elements.credential.value = JSON.stringify(made);
    form.submit();
  } catch (error) {
    form.querySelector("[role=alert]").textContent = "No passkey was used: " + error.message;
    button.disabled = false;
  }
}

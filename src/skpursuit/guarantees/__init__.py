"""How good an answer is: `audit` weighs the choices of any path, `certify` bounds what models can reach."""

from tests.ui.requests.test_tools_by_hand import *
async def test_sel(world):
    async with by_hand(world) as hand:
        await hand.open("order")
        await hand.press(*"tea")
        ed = hand.form.editor
        print(ed.current, [r.field.key for r in ed.form.rows])
        sel = hand.row("/pay?")
        sel.value = 1
        await hand.pilot.pause(0.5)
        print(ed.current, [(r.field.key, r.field.default) for r in ed.form.rows])
        print(ed.json.text, sel.value)
        row = next(one for one in ed.form.rows if one.field.key=="/pay?")
        print(row.chooses_fields, row.value(), ed.form.check(whole=False))
